//! What counts as a test that names a scenario, and what does not.
//!
//! The samples write `§` for `S` and a bar before each line, so that the check does not take them for tests of this repository.

use super::{ids, scenarios, tests};

fn sample(text: &str) -> String {
    text.replace('|', "").replace('§', "S")
}

fn named(text: &str) -> Vec<(String, Vec<u8>)> {
    tests(&sample(text)).into_iter().map(|test| (test.name, test.ids.into_iter().collect())).collect()
}

#[test]
fn lists_and_ranges_name_each_of_their_ids() {
    let of = |comment| ids(&sample(comment)).into_iter().collect::<Vec<_>>();
    assert_eq!(of("// §03 §04, §11: words"), [3, 4, 11]);
    assert_eq!(of("// §08–§10, §12-§13 and §20"), [8, 9, 10, 12, 13, 20]);
    assert_eq!(of("// §08 - a dash is no range, §10"), [8, 10]);
    assert_eq!(of("// X§08, §1, §123, A§99 and sha §2x"), Vec::<u8>::new());
}

#[test]
fn a_comment_above_in_the_doc_or_inside_counts() {
    let text = "\
|/// §01: a doc.
|#[test]
|fn above() {}
|
|#[test]
|#[expect(
|    clippy::too_many_lines,
|    reason = \"a table\"
|)]
|// §02
|fn between() {
|    // §03
|    let a = 1; // §04
|}
|
|mod inner {
|    // §05
|    #[tokio::test(flavor = \"current_thread\")]
|    async fn inside() {
|        if true {
|            // §06
|        }
|    }
|}
";
    let expected = [("above", vec![1]), ("between", vec![2, 3, 4]), ("inside", vec![5, 6])];
    let expected: Vec<_> = expected.into_iter().map(|(name, ids)| (name.to_owned(), ids)).collect();
    assert_eq!(named(text), expected);
}

#[test]
fn a_mention_outside_a_test_counts_for_nothing() {
    let text = "\
|//! §01 in the head of the file.
|
|// §02 above a function that is no test.
|fn plain() {
|    // §03
|}
|
|// §04 with a blank line behind it.
|
|#[test]
|fn unnamed() {
|    let url = \"http://§05\";
|    let text = \"// §06\";
|}
";
    assert_eq!(named(text), []);
}

#[test]
fn a_scenario_is_a_line_of_the_list() {
    let text = sample("# §01\n- §02 try this → that.\n  §03 goes on\n- §04x\n");
    assert_eq!(scenarios(&text).into_iter().collect::<Vec<_>>(), [(2, "try this → that.")]);
}
