//! File systems are known by their magic number.

use super::*;

// S02
#[test]
fn memory_overlay_and_network_are_told_from_local_disks() {
    assert_eq!(FileSystem::from_magic(0xEF53).notice(), None);
    assert_eq!(FileSystem::from_magic(0x0102_1994).notice(), Some(Notice::InMemory));
    assert_eq!(FileSystem::from_magic(0x794C_7630).notice(), Some(Notice::Layered));
    assert_eq!(FileSystem::from_magic(0x6969).notice(), Some(Notice::Network));
    assert_eq!(FileSystem::from_magic(7).notice(), Some(Notice::Untested));
    assert_eq!(FileSystem::from_magic(7).to_string(), "file system 0x7");
    assert!(!FileSystem::Tmpfs.is_supported());
}
