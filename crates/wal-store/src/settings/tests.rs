//! Tests of the settings.

use std::time::Duration;

use super::{Settings, SyncSetting};

#[test]
fn the_defaults_are_valid() {
    Settings::default().validate().unwrap();
}

#[test]
fn every_setting_that_cannot_be_is_refused_by_name() {
    // S55
    type Break = fn(&mut Settings);
    let cases: [(&str, Break); 12] = [
        ("segment_bytes_max", |s| s.segment_bytes_max = 4175),
        ("segment_age_max", |s| s.segment_age_max = Some(Duration::ZERO)),
        ("record_bytes_max", |s| s.record_bytes_max = 0),
        ("record_bytes_max", |s| s.record_bytes_max = (256 << 20) + 1),
        ("batch_bytes_max", |s| s.batch_bytes_max = s.record_bytes_max + 15),
        ("batch_bytes_max", |s| s.batch_bytes_max = (512 << 20) + 1),
        ("batch_records_max", |s| s.batch_records_max = 0),
        ("commit_interval", |s| s.commit_interval = Duration::ZERO),
        ("sync", |s| s.sync = SyncSetting::Every(Duration::ZERO)),
        ("unsynced_bytes_max", |s| s.unsynced_bytes_max = 0),
        ("retry_after", |s| s.retry_after = Duration::ZERO),
        ("probe_after", |s| s.probe_after = Duration::ZERO),
    ];
    for (field, break_it) in cases {
        let mut settings = Settings::default();
        break_it(&mut settings);
        assert_eq!(settings.validate().unwrap_err().field, field);
    }
}

#[test]
fn settings_at_their_limits_are_valid() {
    let mut settings = Settings { segment_bytes_max: 4176, batch_records_max: 1, ..Settings::default() };
    settings.batch_bytes_max = settings.record_bytes_max + 16;
    settings.validate().unwrap();
    settings.batch_bytes_max = 512 << 20;
    settings.record_bytes_max = 256 << 20;
    settings.validate().unwrap();
}
