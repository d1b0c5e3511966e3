//! Ports: opened from a configuration, shared by workers, and opened again when their devices come back.

pub(crate) mod capture_port;
pub(crate) mod checks;
pub(crate) mod device;
pub mod doctor;
pub(crate) mod interface;
#[cfg(target_os = "linux")]
pub(crate) mod lanes;
pub(crate) mod offload;
pub(crate) mod opening;
pub(crate) mod queues;
pub(crate) mod shared_port;
pub(crate) mod too_long;
pub(crate) mod tunnel;
#[cfg(target_os = "linux")]
pub(crate) mod xdp_ports;
#[cfg(not(target_os = "linux"))]
#[path = "no_xdp_ports.rs"]
pub(crate) mod xdp_ports;
