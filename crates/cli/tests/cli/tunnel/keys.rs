//! `tamis tunnel keygen` and `pubkey`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::ran::{Scratch, fed, tamis};

#[test]
fn a_private_key_is_its_owners_and_never_written_over() {
    let folder = Scratch::new("tunnel-keygen");
    let file = folder.file("office.key");
    let ran = tamis(&["tunnel", "keygen", "--out", &file]);
    assert_eq!((ran.code, ran.out.len(), &*ran.err), (Some(0), 45, ""));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    let private = fs::read(&file).unwrap();
    assert_eq!(private.len(), 45);
    // What it prints is what `pubkey` makes of it, and not the secret.
    assert_eq!(fed(&["tunnel", "pubkey"], &private).out, ran.out);
    assert_ne!(private, ran.out.as_bytes());
    let again = tamis(&["tunnel", "keygen", "--out", &file]);
    assert!(again.refusal().ends_with("office.key: File exists"), "{again:?}");
    assert_eq!(fs::read(&file).unwrap(), private);
}

#[test]
fn a_key_goes_through_a_pipe() {
    let (one, other) = (tamis(&["tunnel", "keygen"]), tamis(&["tunnel", "keygen"]));
    assert_ne!(one.out, other.out);
    let public = fed(&["tunnel", "pubkey"], one.out.as_bytes());
    assert_eq!(one.err, format!("public key: {}", public.out));
    let preshared = tamis(&["tunnel", "keygen", "--preshared"]);
    assert_eq!((preshared.out.len(), &*preshared.err), (45, ""));
    // RFC 7748, section 6.1: Alice's.
    let known = fed(&["tunnel", "pubkey"], b"dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=\n");
    assert_eq!(known.out, "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n");
}

#[test]
fn what_is_no_key_is_refused_and_not_shown() {
    for bad in ["", "secret", "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo"] {
        let ran = fed(&["tunnel", "pubkey"], bad.as_bytes());
        let what = "standard input: no key, which is 32 bytes as 44 characters of base64";
        assert_eq!(ran.refusal(), what);
    }
    let noise = fed(&["tunnel", "pubkey"], &[0xff; 300]);
    assert!(noise.refusal().starts_with("standard input: "));
}
