//! File patterns against names and folders.

use super::*;

#[test]
fn names_match_as_in_a_shell() {
    for (pattern, name, expected) in [
        ("*.log", "a.log", true),
        ("*.log", ".a.log", false),
        (".*", ".a", true),
        ("a*b*c", "aXbYbZc", true),
        ("a*b*c", "aXbYbZ", false),
        ("?", "x", true),
        ("?", "", false),
        ("[a-c]1", "b1", true),
        ("[a-c]1", "d1", false),
        ("[!a-c]1", "d1", true),
        ("[]]", "]", true),
        ("[x", "[x", true),
        ("*", "anything", true),
        ("", "", true),
    ] {
        assert_eq!(matches_name(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} against {name}");
    }
}

#[test]
fn patterns_find_files_in_order_and_never_folders() {
    let dir = tempfile::tempdir().unwrap();
    for path in ["b.log", "a.log", "sub/c.log", "sub/deep/d.log", "e.txt", "x.log/inner.txt"] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let find = |pattern: &str| -> Vec<String> {
        PathPattern::new(dir.path(), pattern)
            .expand()
            .iter()
            .map(|path| path.strip_prefix(dir.path()).unwrap().display().to_string())
            .collect()
    };
    assert_eq!(find("*.log"), ["a.log", "b.log"]);
    assert_eq!(find("**/*.log"), ["a.log", "b.log", "sub/c.log", "sub/deep/d.log"]);
    assert_eq!(find("s*/*.log"), ["sub/c.log"]);
    assert_eq!(find("e.txt"), ["e.txt"]);
    assert!(find("none*").is_empty());
    let pattern = PathPattern::new(dir.path(), "**/*.log");
    assert!(pattern.matches(&dir.path().join("new/folder/x.log")));
    assert!(!pattern.matches(&dir.path().join("new/folder/x.txt")));
}
