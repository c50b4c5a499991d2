//! The simulated disk keeps the same contract as the real one.

use sim_disk::SimDisk;

#[test]
fn the_simulated_disk_keeps_the_contract() {
    let disk = SimDisk::new();
    disk::contract::check(&disk);
    assert_eq!(disk.open_files(), 0, "every handle was given back");
}
