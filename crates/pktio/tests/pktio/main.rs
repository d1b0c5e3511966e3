//! Capture files: built by hand, and from tcpdump's own tests. Frames in memory of their own.
//! TUN devices, packet sockets and AF_XDP, as root.

#[cfg(target_os = "linux")]
mod af_packet;
#[cfg(target_os = "linux")]
mod af_xdp;
mod capture_files;
#[cfg(target_os = "linux")]
mod datagram;
mod memory;
mod tcpdump_corpus;
#[cfg(target_os = "linux")]
mod tun;
