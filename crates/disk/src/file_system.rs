//! What a directory lies on, and what that means for durability: by name, never by guess.

use std::fmt;

/// A kind of file system, by the number the kernel gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileSystem {
    /// ext2, ext3 or ext4.
    Ext,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// ZFS.
    Zfs,
    /// Memory: nothing survives a restart of the machine.
    Tmpfs,
    /// An overlay, as in containers: what a sync means depends on the layer below.
    Overlay,
    /// NFS.
    Nfs,
    /// CIFS or SMB.
    Cifs,
    /// FUSE: what a sync means depends on the program behind it.
    Fuse,
    /// 9p, as in some virtual machines.
    NineP,
    /// A simulated disk.
    Simulated,
    /// Anything else, by its magic number.
    Other(u64),
}

/// Why durability on a file system is not what is promised elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notice {
    /// Nothing on it survives a restart of the machine.
    InMemory,
    /// A sync is only as good as the layer below, which is not visible from here.
    Layered,
    /// Over a network: locks and syncs are not what they are on a local disk.
    Network,
    /// Never tested.
    Untested,
}

impl FileSystem {
    /// By the magic number of `statfs`.
    #[must_use]
    pub const fn from_magic(magic: u64) -> Self {
        match magic {
            0xEF53 => Self::Ext,
            0x5846_5342 => Self::Xfs,
            0x9123_683E => Self::Btrfs,
            0xF2F5_2010 => Self::F2fs,
            0x2FC1_2FC1 => Self::Zfs,
            0x0102_1994 | 0x8584_58F6 => Self::Tmpfs,
            0x794C_7630 => Self::Overlay,
            0x6969 => Self::Nfs,
            0xFF53_4D42 | 0xFE53_4D42 | 0x517B => Self::Cifs,
            0x6573_5546 => Self::Fuse,
            0x0102_1997 => Self::NineP,
            other => Self::Other(other),
        }
    }

    /// What a user should be told; `None` for local file systems whose crash behaviour was tested.
    #[must_use]
    pub const fn notice(self) -> Option<Notice> {
        match self {
            Self::Ext | Self::Xfs | Self::Btrfs | Self::Simulated => None,
            Self::Tmpfs => Some(Notice::InMemory),
            Self::Overlay | Self::Fuse => Some(Notice::Layered),
            Self::Nfs | Self::Cifs | Self::NineP => Some(Notice::Network),
            Self::F2fs | Self::Zfs | Self::Other(_) => Some(Notice::Untested),
        }
    }

    /// Whether a `Durable` promise holds here as documented.
    #[must_use]
    pub const fn is_supported(self) -> bool {
        self.notice().is_none()
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ext => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::F2fs => "f2fs",
            Self::Zfs => "zfs",
            Self::Tmpfs => "tmpfs",
            Self::Overlay => "overlay",
            Self::Nfs => "nfs",
            Self::Cifs => "cifs",
            Self::Fuse => "fuse",
            Self::NineP => "9p",
            Self::Simulated => "simulated",
            Self::Other(magic) => return write!(f, "file system {magic:#x}"),
        })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InMemory => "it lies in memory: nothing survives a restart of the machine",
            Self::Layered => {
                "what a sync means there depends on the layer below, which cannot be seen from here"
            }
            Self::Network => "it lies on a network: locks and syncs are weaker than on a local disk",
            Self::Untested => "its behaviour in a crash was never tested",
        })
    }
}

#[cfg(test)]
mod tests;
