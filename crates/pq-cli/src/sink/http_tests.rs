//! Answers and what they mean.

use super::*;

#[test]
fn every_status_has_its_class() {
    let seconds = HeaderValue::from_static("7");
    let date = HeaderValue::from_static("Wed, 21 Oct 2026 07:28:00 GMT");
    let again = |status: u16| Answer::Again(format!("answered {}", StatusCode::from_u16(status).unwrap()));
    for status in [200, 201, 202, 204] {
        assert_eq!(classify(StatusCode::from_u16(status).unwrap(), None), Answer::Arrived);
    }
    for status in [301, 400, 401, 404, 408, 422, 429, 500, 502, 503, 504] {
        assert_eq!(classify(StatusCode::from_u16(status).unwrap(), None), again(status));
        assert_eq!(classify(StatusCode::from_u16(status).unwrap(), Some(&date)), again(status));
    }
    for status in [429, 503] {
        let answer = classify(StatusCode::from_u16(status).unwrap(), Some(&seconds));
        assert_eq!(answer, Answer::Wait(Duration::from_secs(7)));
    }
    assert_eq!(classify(StatusCode::PAYLOAD_TOO_LARGE, None), Answer::TooLarge);
}
