//! pktio
