//! Packets in by one TUN device, out by another: no Ethernet, no neighbours. Where the scene says so frames come in by a
//! TAP device.
//!
//! write(2) on such a device runs the kernel's whole receive path before it returns.

use std::fs::File;
use std::io::{self, Read, Write};

use super::netns::{ip, settle_device};
use super::sys;
use crate::device::Device;
use crate::scene::{LOCAL_V4, LOCAL_V6, NEAR_MAC, Scene, Wire};

/// Packets that a device holds until they are read.
const QUEUE: u32 = 8192;

/// The two devices of a scene, opened.
#[derive(Debug)]
pub struct Tun {
    near: File,
    far: File,
}

impl Tun {
    /// Makes the scene's devices in the calling thread's namespace, with every route out by the second.
    pub fn new(scene: &Scene) -> io::Result<Self> {
        let [t0, t1] = scene.devices.each_ref().map(Device::name);
        let ethernet = scene.wire == Wire::Tap;
        let (near, far) = (sys::open_tun(t0, ethernet)?, sys::open_tun(t1, false)?);
        if ethernet {
            let [a, b, c, d, e, f] = NEAR_MAC;
            ip(&format!(
                "link set {t0} address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}\n"
            ))?;
        }
        settle_device(t0)?;
        settle_device(t1)?;
        // The most that it takes.
        let mtu = if ethernet { 65521 } else { 65535 };
        ip(&format!(
            "link set {t0} mtu {mtu} txqueuelen {QUEUE} up\n\
             link set {t1} mtu 65535 txqueuelen {QUEUE} up\n\
             addr add {}/24 dev {t0}\naddr add {}/24 dev {t1}\n\
             addr add {}/64 dev {t0} nodad\naddr add {}/64 dev {t1} nodad\n\
             route add default dev {t1}\nroute add ::/0 dev {t1}\n",
            LOCAL_V4[0], LOCAL_V4[1], LOCAL_V6[0], LOCAL_V6[1]
        ))?;
        Ok(Self { near, far })
    }

    /// Hands the kernel a packet. It refuses some by their first nibble, which is an answer too.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        send(&mut self.near, packet)
    }

    /// The same by the far device.
    pub fn send_far(&mut self, packet: &[u8]) -> io::Result<()> {
        send(&mut self.far, packet)
    }

    /// Takes one forwarded packet, if there is one.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        receive(&mut self.far, buffer)
    }

    /// The same from the near device.
    pub fn receive_near(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        receive(&mut self.near, buffer)
    }
}

/// Makes a TUN device in the calling thread's namespace, and opens it, non-blocking, for one bare packet a call.
pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    sys::open_tun(name, false)
}

fn send(device: &mut File, packet: &[u8]) -> io::Result<()> {
    match device.write(packet) {
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

fn receive(device: &mut File, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match device.read(buffer) {
        Ok(len) => Ok(Some(len)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
