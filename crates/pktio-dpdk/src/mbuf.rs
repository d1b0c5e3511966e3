//! [`MbufPool`]: the region that frames of DPDK belong to. A chunk is an mbuf's data room, its tag the mbuf.
//!
//! Contract: one pool for each NUMA node, shared by all ports there, so a frame goes from one port to another as it
//! is. Frames may be dropped on any thread; they go back in bulk, to the cache of a thread that DPDK knows, and from
//! there to the others once it holds more than [`DpdkConfig::free_burst`](crate::DpdkConfig). A pool keeps the EAL, and
//! a frame its pool. The region is nobody's outside of this crate: all memory that comes back to it is an mbuf's.

use std::ffi::{CString, c_int};
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pktio::{Memory, Region};

use crate::eal::Eal;
use crate::sys::{Mbuf, Mempool};

/// Mbufs of a NUMA node. One less than a power of two is what a mempool stores best.
const MBUFS: u32 = (1 << 14) - 1;

/// Bytes of an mbuf before a received frame (`RTE_PKTMBUF_HEADROOM`), and the bytes that a frame may take.
const HEADROOM: u16 = 128;
const FRAME_BYTES: u16 = 2048;

/// The pools of the process's only EAL: one for each NUMA node that a device is at, while somebody uses it.
static POOLS: Mutex<Vec<(c_int, Weak<MbufPool>)>> = Mutex::new(Vec::new());

/// Memory of frames.
#[derive(Debug)]
pub(crate) struct MbufPool {
    pub(crate) pool: Mempool,
    /// Keeps the EAL running, whose end frees the pool.
    _eal: Eal,
}

impl MbufPool {
    /// The memory of frames at a NUMA node. The first to ask decides how many mbufs a thread keeps.
    pub(crate) fn at(eal: &Eal, socket: c_int, cache: usize) -> io::Result<Arc<Self>> {
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|(_, pool)| pool.strong_count() > 0);
        let known = pools.iter().find(|(at, _)| *at == socket);
        if let Some(pool) = known.and_then(|(_, pool)| pool.upgrade()) {
            return Ok(pool);
        }
        let pool = Arc::new(Self::new(eal.clone(), socket, cache)?);
        pools.push((socket, Arc::downgrade(&pool)));
        Ok(pool)
    }

    fn new(eal: Eal, socket: c_int, cache: usize) -> io::Result<Self> {
        let name = CString::new(format!("tamis-{socket}")).unwrap_or_default();
        let pool = Mempool::new(&name, MBUFS, cache as u32, HEADROOM + FRAME_BYTES, socket)?;
        Ok(Self { pool, _eal: eal })
    }
}

impl Region for MbufPool {
    fn take_back(&self, chunks: &mut dyn Iterator<Item = Memory>) {
        Mbuf::free(chunks.filter_map(Mbuf::from_frame));
    }
}

/// Shows how much of a port's memory is free, to find leaks.
#[derive(Clone, Debug)]
pub struct Mbufs {
    pub(crate) pool: Arc<MbufPool>,
}

impl Mbufs {
    /// All mbufs.
    #[must_use]
    pub fn all(&self) -> usize {
        self.pool.pool.mbufs()
    }

    /// Mbufs that nobody has, neither a frame nor a device.
    #[must_use]
    pub fn free(&self) -> usize {
        self.pool.pool.free()
    }
}
