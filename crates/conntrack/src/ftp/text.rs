//! [`Text`]: how the kernel writes an address and a port into a line of a control connection.
//!
//! Source: Linux 6.18 `nf_nat_ftp.c` (`nf_nat_ftp_fmt_cmd`).

use std::io::Write;
use std::net::{IpAddr, Ipv6Addr};

/// How a line names an address and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `192,0,2,1,5,6`: PORT and 227.
    Six,
    /// `|1|192.0.2.1|1286|` or `|2|2001:0db8:…|1286|`: EPRT. An IPv6 address is not shortened.
    Extended,
    /// `|||1286|`: 229.
    PortOnly,
}

/// At most `|2|`, 39 characters, `|65535|`.
const MOST: usize = 49;

/// A few characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    bytes: [u8; MOST],
    len: u8,
}

impl Text {
    /// This address and port in this form.
    pub(crate) fn of(form: Form, address: IpAddr, port: u16) -> Self {
        let mut bytes = [0; MOST];
        let mut rest = bytes.as_mut_slice();
        // The longest fits.
        let _ = write(&mut rest, form, address, port);
        let left = rest.len();
        Self { bytes, len: (MOST - left) as u8 }
    }

    /// The characters in use, without padding.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

fn write(out: &mut &mut [u8], form: Form, address: IpAddr, port: u16) -> std::io::Result<()> {
    match (form, address) {
        (Form::PortOnly, _) => write!(out, "|||{port}|"),
        (Form::Extended, IpAddr::V4(address)) => write!(out, "|1|{address}|{port}|"),
        (Form::Extended, IpAddr::V6(address)) => {
            write!(out, "|2|")?;
            groups(out, address)?;
            write!(out, "|{port}|")
        }
        (Form::Six, IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            write!(out, "{a},{b},{c},{d},{},{}", port >> 8, port & 0xff)
        }
        // The kernel takes the first four bytes for the address.
        (Form::Six, IpAddr::V6(address)) => {
            let [a, b, c, d, ..] = address.octets();
            write!(out, "{a},{b},{c},{d},{},{}", port >> 8, port & 0xff)
        }
    }
}

fn groups(out: &mut &mut [u8], address: Ipv6Addr) -> std::io::Result<()> {
    for (index, group) in address.segments().iter().enumerate() {
        let colon = if index == 0 { "" } else { ":" };
        write!(out, "{colon}{group:04x}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: Form, address: &str, port: u16) -> String {
        let text = Text::of(form, address.parse().unwrap(), port);
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn each_form_as_the_kernel_writes_it() {
        assert_eq!(text(Form::Six, "203.0.113.101", 1025), "203,0,113,101,4,1");
        assert_eq!(text(Form::Extended, "203.0.113.101", 1025), "|1|203.0.113.101|1025|");
        let long = "|2|2001:0db8:0003:0000:0000:0000:0000:0101|1025|";
        assert_eq!(text(Form::Extended, "2001:db8:3::101", 1025), long);
        assert_eq!(text(Form::PortOnly, "2001:db8:3::101", 65_535), "|||65535|");
    }

    #[test]
    fn the_longest_fits() {
        let address = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff";
        assert_eq!(text(Form::Extended, address, u16::MAX).len(), MOST);
    }
}
