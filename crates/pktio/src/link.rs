//! Link types: the numbers that capture files use for "how the first header is to be read".
//!
//! Contract: a number and its name, nothing more; which link types can be replayed is for the caller to
//! say. Source: the LINKTYPE_ registry of tcpdump.org (`linktypes.html`).

use std::fmt;

/// A LINKTYPE_ number as a capture file states it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u32);

macro_rules! link_types {
    ($($name:ident = $number:literal, $what:literal;)*) => {
        impl LinkType {
            $(#[doc = $what] pub const $name: Self = Self($number);)*

            /// The registry's name without its prefix; `None` for a number without one here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    // Some systems wrote their own DLT_RAW into files.
                    12 | 14 => Some("RAW"),
                    _ => None,
                }
            }
        }
    };
}

impl LinkType {
    /// A frame in the envelope of its port ([`Envelope`](crate::Envelope)); no file has it.
    pub const SEALED: Self = Self(u32::MAX);
}

link_types! {
    NULL = 0, "BSD loopback: a 4-byte address family in the capturing host's byte order.";
    ETHERNET = 1, "Ethernet.";
    AX25 = 3, "AX.25 packet.";
    IEEE802_5 = 6, "Token Ring.";
    ARCNET_BSD = 7, "ARCNET with BSD encapsulation.";
    SLIP = 8, "SLIP with a direction byte.";
    PPP = 9, "PPP, with or without HDLC framing.";
    FDDI = 10, "FDDI.";
    PPP_HDLC = 50, "PPP in HDLC-like framing.";
    PPP_ETHER = 51, "PPP over Ethernet session.";
    ATM_RFC1483 = 100, "LLC or SNAP over ATM.";
    RAW = 101, "An IPv4 or IPv6 packet.";
    C_HDLC = 104, "Cisco PPP with HDLC framing.";
    IEEE802_11 = 105, "Wireless LAN.";
    FRELAY = 107, "Frame Relay.";
    LOOP = 108, "OpenBSD loopback: a 4-byte address family, big endian.";
    LINUX_SLL = 113, "Linux cooked capture, version 1.";
    LTALK = 114, "Apple LocalTalk.";
    PFLOG = 117, "OpenBSD pf log.";
    PRISM_HEADER = 119, "Prism monitor header and 802.11.";
    IP_OVER_FC = 122, "IP and ATM over Fibre Channel.";
    SUNATM = 123, "ATM as SunATM shows it.";
    IEEE802_11_RADIOTAP = 127, "Radiotap header and 802.11.";
    ARCNET_LINUX = 129, "ARCNET with Linux encapsulation.";
    APPLE_IP_OVER_IEEE1394 = 138, "IP over IEEE 1394.";
    MTP2 = 140, "SS7 message transfer part 2.";
    SCCP = 142, "SS7 signalling connection control part.";
    DOCSIS = 143, "DOCSIS MAC frames.";
    LINUX_IRDA = 144, "Linux IrDA.";
    IEEE802_11_AVS = 163, "AVS header and 802.11.";
    BACNET_MS_TP = 165, "BACnet MS/TP.";
    PPP_PPPD = 166, "PPP with a direction byte, as pppd writes it.";
    GPRS_LLC = 169, "GPRS logical link control.";
    BLUETOOTH_HCI_H4 = 187, "Bluetooth HCI UART transport.";
    USB_LINUX = 189, "USB with a Linux header.";
    PPI = 192, "Per-packet information header.";
    IEEE802_15_4_WITHFCS = 195, "IEEE 802.15.4 with check sequence.";
    BLUETOOTH_HCI_H4_WITH_PHDR = 201, "Bluetooth HCI with a direction field.";
    PPP_WITH_DIR = 204, "PPP with a direction byte.";
    IPMB_LINUX = 209, "IPMB with a Linux header.";
    USB_LINUX_MMAPPED = 220, "USB with a padded Linux header.";
    FC_2 = 224, "Fibre Channel FC-2 frames.";
    IPNET = 226, "Solaris ipnet.";
    CAN_SOCKETCAN = 227, "Controller area network.";
    IPV4 = 228, "An IPv4 packet.";
    IPV6 = 229, "An IPv6 packet.";
    IEEE802_15_4_NOFCS = 230, "IEEE 802.15.4 without check sequence.";
    DBUS = 231, "D-Bus messages.";
    NFLOG = 239, "Linux netlink NFLOG messages.";
    NETANALYZER = 240, "Hilscher netANALYZER.";
    IPOIB = 242, "IP over InfiniBand.";
    MPEG_2_TS = 243, "MPEG-2 transport stream.";
    INFINIBAND = 247, "InfiniBand.";
    SCTP = 248, "SCTP packets without IP.";
    USBPCAP = 249, "USB as USBPcap writes it.";
    BLUETOOTH_LE_LL = 251, "Bluetooth Low Energy link layer.";
    NETLINK = 253, "Linux netlink messages.";
    BLUETOOTH_LINUX_MONITOR = 254, "Bluetooth as the Linux monitor shows it.";
    PKTAP = 258, "Apple PKTAP.";
    EPON = 259, "Ethernet passive optical network.";
    ZWAVE_R1_R2 = 261, "Z-Wave R1 and R2.";
    ISO_14443 = 264, "ISO 14443 contactless cards.";
    USB_DARWIN = 266, "USB as Darwin shows it.";
    VSOCK = 271, "Linux vsock.";
    LINUX_SLL2 = 276, "Linux cooked capture, version 2.";
}

/// The registry's name, or `link type N`.
impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "link type {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers_print_their_names_and_others_print_as_numbers() {
        assert_eq!(LinkType::ETHERNET.to_string(), "ETHERNET");
        assert_eq!(LinkType(276), LinkType::LINUX_SLL2);
        assert_eq!(LinkType(12).to_string(), "RAW");
        assert_eq!(LinkType(147).to_string(), "link type 147");
    }
}
