//! What counts as a random test.

use super::*;

#[test]
fn tests_of_random_blocks_are_found_and_no_others() {
    let source = "#[test]\nfn plain() {}\n\nproptest! {\n    #![proptest_config(x)]\n\n    // S24\n    #[test]\n    fn one(\n        \
                  a in any::<u8>(),\n    ) {\n        fn inner() {}\n    }\n\n    #[test]\n    fn two(b in 1..2) {}\n}\n\n#[test]\nfn \
                  other() {}\n";
    assert_eq!(random_tests(source), ["one", "two"]);
}

#[test]
fn every_block_of_this_workspace_is_understood() {
    let mut names = BTreeSet::new();
    look(&root().join("crates"), &mut names).unwrap();
    let blocks = command("grep -rhc proptest!.{$ crates --include=*.rs").output().unwrap();
    let blocks: usize =
        String::from_utf8(blocks.stdout).unwrap().lines().map(|line| line.parse::<usize>().unwrap()).sum();
    assert!(blocks > 10 && names.len() >= blocks, "{blocks} blocks, {names:?}");
}

#[test]
fn what_ran_is_counted_and_not_what_was_looked_for() {
    let said = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed\n\ntest result: ok. 12 passed; 0 failed\nok. 3 passed\n";
    assert_eq!(passed(said), 12);
}
