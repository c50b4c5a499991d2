//! The file system as pq sees it: the Disk and File traits, the real disk, and a budget of open files.
