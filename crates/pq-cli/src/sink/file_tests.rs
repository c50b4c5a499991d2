//! Claims, cuts and notices of the file sink, without a queue.

use super::*;

fn fds() -> Arc<FdBudget> {
    FdBudget::new(pq::FdLimit { total: 8, reserved: 1 })
}

#[test]
fn a_note_reads_back_as_it_was_written() {
    let extent = Extent { id: FileId { dev: 1, inode: u64::MAX, born: 0 }, length: u64::MAX };
    assert_eq!(Extent::parse(extent.to_string().as_bytes()), Some(extent));
    for bad in ["", "2 1 1 1 1", "1 1 1 1", "1 1 1 1 1 1"] {
        assert_eq!(Extent::parse(bad.as_bytes()), None);
    }
}

#[test]
fn what_a_killed_run_wrote_behind_its_note_is_cut_and_what_others_added_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/out.log");
    let claimed = claim(&path, b"", LastStop::Unclean, FileSync::EachTurn).unwrap();
    let (extent, notice) = write(&path, claimed.extent, FileSync::EachTurn, &fds(), b"one\n").unwrap();
    assert_eq!(notice, None);
    write(&path, extent, FileSync::Never, &fds(), b"two\n").unwrap();

    let note = extent.to_string().into_bytes();
    let kept = claim(&path, &note, LastStop::Clean, FileSync::Never).unwrap();
    assert!(kept.notice.unwrap().contains("4 bytes were added"));
    assert_eq!(fs::read(&path).unwrap(), b"one\ntwo\n");

    let cut = claim(&path, &note, LastStop::Unclean, FileSync::Never).unwrap();
    assert_eq!((cut.extent, cut.notice), (extent, None));
    assert_eq!(fs::read(&path).unwrap(), b"one\n");
}

#[test]
fn a_file_that_was_there_before_is_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.log");
    fs::write(&path, "theirs\n").unwrap();
    let claimed = claim(&path, b"", LastStop::Unclean, FileSync::Never).unwrap();
    write(&path, claimed.extent, FileSync::Never, &fds(), b"ours\n").unwrap();
    let again =
        claim(&path, claimed.extent.to_string().as_bytes(), LastStop::Unclean, FileSync::Never).unwrap();
    assert_eq!(again.extent.length, 7);
    assert_eq!(fs::read(&path).unwrap(), b"theirs\n");
}

#[test]
fn output_replaced_by_somebody_else_is_gone_on_with_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.log");
    let claimed = claim(&path, b"", LastStop::Clean, FileSync::Never).unwrap();
    let (extent, _) = write(&path, claimed.extent, FileSync::Never, &fds(), b"one\n").unwrap();
    fs::rename(&path, dir.path().join("out.log.1")).unwrap();
    let (next, notice) = write(&path, extent, FileSync::Never, &fds(), b"two\n").unwrap();
    assert!(notice.unwrap().contains("replaced"));
    assert_eq!(fs::read(&path).unwrap(), b"two\n");
    fs::write(&path, "").unwrap();
    let (_, notice) = write(&path, next, FileSync::Never, &fds(), b"three\n").unwrap();
    assert!(notice.unwrap().contains("length was changed"));
    assert_eq!(fs::read(&path).unwrap(), b"three\n");
}
