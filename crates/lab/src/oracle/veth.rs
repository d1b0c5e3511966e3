//! Frames in by one veth pair, out by another, with neighbours set by hand.
//!
//! `s0` and `d0`, the far ends, stand in the same namespace; nothing that arrives at them reaches the
//! stack there, for it is sent to an address that is not theirs and IPv6 is off. The receive softirq
//! runs before send(2) returns. Source: packet(7), veth(4).

use std::fs::File;
use std::io::{self, Read, Write};

use super::netns::{ip, settle_device, write_setting};
use super::sys;
use crate::device::Device;
use crate::scene::{GATEWAY_V4, GATEWAY_V6, LOCAL_V4, LOCAL_V6, Scene};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;
const MTU: u32 = 9000;

/// The far ends of the two pairs.
#[derive(Debug)]
pub struct Veth {
    near: File,
    far: File,
}

impl Veth {
    /// Makes the pairs in the calling thread's namespace, with every route out by the scene's second device.
    pub fn new(scene: &Scene) -> io::Result<Self> {
        let [r0, r1] = scene.devices.each_ref().map(Device::name);
        ip(&format!(
            "link add s0 mtu {MTU} address 02:00:00:00:00:01 type veth peer name {r0} mtu {MTU} \
             address 02:00:00:00:00:02\n\
             link add {r1} mtu {MTU} address 02:00:00:00:00:03 type veth peer name d0 mtu {MTU} \
             address 02:00:00:00:00:04\n"
        ))?;
        for device in ["s0", r0, r1, "d0"] {
            settle_device(device)?;
        }
        write_setting("ipv6/conf/s0/disable_ipv6", "1")?;
        write_setting("ipv6/conf/d0/disable_ipv6", "1")?;
        let mut lines = String::new();
        for device in ["s0", r0, r1, "d0"] {
            lines += &format!("link set {device} arp off up\n");
        }
        lines += &format!(
            "addr add {}/24 dev {r0}\naddr add {}/24 dev {r1}\n\
             addr add {}/64 dev {r0} nodad\naddr add {}/64 dev {r1} nodad\n\
             neigh add {GATEWAY_V4} lladdr 02:00:00:00:00:99 nud permanent dev {r1}\n\
             neigh add {GATEWAY_V6} lladdr 02:00:00:00:00:99 nud permanent dev {r1}\n\
             route add default via {GATEWAY_V4} dev {r1}\n\
             route add ::/0 via {GATEWAY_V6} dev {r1}\n",
            LOCAL_V4[0], LOCAL_V4[1], LOCAL_V6[0], LOCAL_V6[1]
        );
        ip(&lines)?;
        Ok(Self {
            near: sys::packet_socket(super::netns::device_index("s0")?)?,
            far: sys::packet_socket(super::netns::device_index("d0")?)?,
        })
    }

    /// Sends a frame. One without an Ethernet header cannot be sent, and counts as refused.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if frame.len() <= ETHERNET {
            return Ok(());
        }
        self.near.write(frame).map(drop)
    }

    /// Takes one forwarded packet, without its Ethernet header, if there is one.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.far.read(buffer) {
                Ok(len) if len > ETHERNET => {
                    buffer.copy_within(ETHERNET..len, 0);
                    return Ok(Some(len - ETHERNET));
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
