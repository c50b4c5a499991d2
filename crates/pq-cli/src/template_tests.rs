//! Templates and safe names.

use super::*;

#[test]
fn only_known_fields_are_taken() {
    let template = Template::new("out/{stream}.log", &["stream"]).unwrap();
    assert_eq!(template.fill(&[("stream", "app")]), "out/app.log");
    assert!(template.uses("stream"));
    assert!(Template::new("{nope}", &["stream"]).unwrap_err().contains("expected `{stream}`"));
    assert!(Template::new("{stream", &["stream"]).is_err());
    assert!(Template::new("", &[]).is_err());
}

#[test]
fn names_never_leave_their_folder_and_never_meet() {
    for (name, safe) in [
        ("app", "app"),
        ("../x", "%2e.%2fx"),
        (".", "%2e"),
        ("a/b", "a%2fb"),
        ("a%2fb", "a%252fb"),
        ("店", "店"),
    ] {
        assert_eq!(path_safe(name), safe);
    }
}
