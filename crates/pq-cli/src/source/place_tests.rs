//! Places in tags.

use super::*;

#[test]
fn a_place_reads_back_as_it_was_written() {
    let place = Place {
        id: FileId { dev: u64::MAX, inode: 42, born: 1 },
        offset: 7,
        head: Head { length: 7, hash: u64::MAX },
    };
    let text = place.to_string();
    assert_eq!(Place::parse(text.as_bytes()), Some(place));
    assert!(text.len() + Slot(u32::MAX).producer().len() < 200, "fits in a tag");
    for bad in ["", "2 1 1 1 1 1 1", "1 1 1 1 1 1", "1 1 1 1 1 1 1 1", "1 x 1 1 1 1 1"] {
        assert_eq!(Place::parse(bad.as_bytes()), None, "{bad}");
    }
    assert_eq!(Slot::parse(b"file/7"), Some(Slot(7)));
    assert_eq!(Slot::parse(b"other/7"), None);
}
