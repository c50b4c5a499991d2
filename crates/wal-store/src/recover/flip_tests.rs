use super::*;

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |r, _| (r >> 1) ^ if r & 1 == 1 { POLYNOMIAL } else { 0 })
    })
}

#[test]
fn every_single_flip_is_found_at_its_place_and_a_lost_sector_is_not() {
    let mut message: Vec<u8> = (0..1500u32).map(|i| (i * 7 + 3) as u8).collect();
    let sound = crc(&message);
    for bit in 0..message.len() * 8 {
        message[bit / 8] ^= 1 << (bit % 8);
        let from_end = (message.len() - 1 - bit / 8) * 8 + (8 - bit % 8);
        assert_eq!(flipped_bit(crc(&message) ^ sound, message.len()), Some(from_end));
        message[bit / 8] ^= 1 << (bit % 8);
    }
    assert_eq!(flipped_bit(0, message.len()), None);
    message[512..1024].fill(0);
    assert_eq!(flipped_bit(crc(&message) ^ sound, message.len()), None);
}
