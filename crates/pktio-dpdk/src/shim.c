/*
 * What DPDK offers only as inline functions and structures, as functions with plain arguments.
 *
 * Contract: `sys.rs` declares each of these, field by field, and is their only caller. Lengths are in bytes, results
 * below 0 are negated error numbers. Nothing here keeps a pointer that it is given.
 *
 * Source: DPDK 22.11, rte_ethdev.h, rte_mbuf.h, rte_mempool.h, rte_lcore.h.
 */
#define _GNU_SOURCE
#include <rte_config.h>

#include <errno.h>
#include <sched.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Frames received with one call, at most. */
#define MOST 512

/* The key whose two bytes repeat gives both directions of a flow one hash (Woo and Park, 2012). */
#define KEY_MOST 64

/* A frame that was received, in an mbuf that it has for itself. */
struct tamis_frame {
	struct rte_mbuf *mbuf;
	uint8_t *room;       /* all of the mbuf's memory, headroom first */
	uint32_t room_bytes;
	uint32_t start;      /* of the frame, in it */
	uint32_t length;
	uint16_t tci;        /* of the tag that the device took out, if IS_STRIPPED */
	uint16_t flags;
};

enum { IS_STRIPPED = 1, IS_VERIFIED = 2 };

/* A frame that is to be sent: where it lies in its mbuf. */
struct tamis_leaving {
	struct rte_mbuf *mbuf;
	uint16_t start;
	uint16_t length;
};

struct tamis_received {
	uint64_t lost;   /* no mbuf was free to copy into, or none is as long */
	uint64_t copied; /* out of several mbufs, or of memory that others share */
};

struct tamis_device {
	uint16_t queues;
	uint16_t mtu;
	int socket;
};

/* Threads keep the processors that they had: the EAL pins the one that calls it. */
int tamis_init(int argc, char **argv)
{
	cpu_set_t before;
	int is_known = sched_getaffinity(0, sizeof(before), &before) == 0;
	int result = rte_eal_init(argc, argv);

	if (is_known)
		sched_setaffinity(0, sizeof(before), &before);
	return result < 0 ? -rte_errno : 0;
}

void tamis_cleanup(void)
{
	rte_eal_cleanup();
}

int tamis_thread_register(void)
{
	return rte_lcore_id() != LCORE_ID_ANY || rte_thread_register() == 0 ? 0 : -rte_errno;
}

void tamis_thread_unregister(void)
{
	rte_thread_unregister();
}

struct rte_mempool *tamis_pool(const char *name, unsigned mbufs, unsigned cache, uint16_t room, int socket)
{
	struct rte_mempool *pool = rte_mempool_lookup(name);

	return pool ? pool : rte_pktmbuf_pool_create(name, mbufs, cache, 0, room, socket);
}

int tamis_errno(void)
{
	return rte_errno;
}

unsigned tamis_pool_free(const struct rte_mempool *pool)
{
	return rte_mempool_avail_count(pool);
}

unsigned tamis_pool_mbufs(const struct rte_mempool *pool)
{
	return pool->size;
}

/* The name of device `at` of those that there are, in order; the number of the device, or -ENODEV after the last. */
int tamis_device_name(unsigned at, char name[RTE_ETH_NAME_MAX_LEN])
{
	uint16_t port;

	RTE_ETH_FOREACH_DEV(port)
		if (at-- == 0)
			return rte_eth_dev_get_name_by_port(port, name) == 0 ? port : -ENODEV;
	return -ENODEV;
}

int tamis_device_socket(uint16_t port)
{
	int socket = rte_eth_dev_socket_id(port);

	return socket < 0 ? 0 : socket;
}

static void steer(struct rte_eth_conf *conf, const struct rte_eth_dev_info *info, uint8_t *key)
{
	uint8_t length = info->hash_key_size ? RTE_MIN(info->hash_key_size, KEY_MOST) : 40;

	for (uint8_t at = 0; at < length; at++)
		key[at] = at % 2 ? 0x5a : 0x6d;
	conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	conf->rx_adv_conf.rss_conf.rss_key = key;
	conf->rx_adv_conf.rss_conf.rss_key_len = length;
	conf->rx_adv_conf.rss_conf.rss_hf = info->flow_type_rss_offloads &
		(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP);
}

static int set_queues_up(uint16_t port, const struct tamis_device *device, struct rte_mempool *pool)
{
	uint16_t received = 1024, sent = 1024;
	int result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &received, &sent);

	for (uint16_t queue = 0; queue < device->queues && result == 0; queue++) {
		result = rte_eth_rx_queue_setup(port, queue, received, device->socket, NULL, pool);
		if (result == 0)
			result = rte_eth_tx_queue_setup(port, queue, sent, device->socket, NULL);
	}
	return result;
}

/* Configures and starts a device. One that cannot steer flows has one queue, whatever was asked for. */
int tamis_device_start(uint16_t port, struct tamis_device *device, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = {0};
	struct rte_eth_dev_info info;
	uint8_t key[KEY_MOST];
	int result = rte_eth_dev_info_get(port, &info);

	if (result != 0)
		return result;
	device->queues = RTE_MIN(device->queues, RTE_MIN(info.max_rx_queues, info.max_tx_queues));
	if (info.flow_type_rss_offloads == 0)
		device->queues = 1;
	if (device->queues > 1)
		steer(&conf, &info, key);
	result = rte_eth_dev_configure(port, device->queues, device->queues, &conf);
	if (result == 0)
		result = set_queues_up(port, device, pool);
	if (result == 0)
		result = rte_eth_dev_start(port);
	if (result != 0)
		return result;
	/* Those without a filter receive everything, and may refuse. */
	rte_eth_promiscuous_enable(port);
	return rte_eth_dev_get_mtu(port, &device->mtu);
}

void tamis_device_close(uint16_t port)
{
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
}

/* Frames that a device lost, or had no mbuf for. */
uint64_t tamis_device_lost(uint16_t port)
{
	struct rte_eth_stats stats;

	return rte_eth_stats_get(port, &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
}

/* The frame in one mbuf of this pool that nobody shares: as it came, or a copy. NULL if there can be none. */
static struct rte_mbuf *own(struct rte_mbuf *came, struct rte_mempool *pool, uint64_t *copied)
{
	struct rte_mbuf *copy;
	const void *bytes;
	uint32_t length = rte_pktmbuf_pkt_len(came);

	if (likely(came->nb_segs == 1 && came->pool == pool && RTE_MBUF_DIRECT(came) &&
		   rte_mbuf_refcnt_read(came) == 1))
		return came;
	copy = rte_pktmbuf_alloc(pool);
	if (copy && length <= rte_pktmbuf_tailroom(copy)) {
		bytes = rte_pktmbuf_read(came, 0, length, rte_pktmbuf_mtod(copy, void *));
		if (bytes != rte_pktmbuf_mtod(copy, void *))
			memcpy(rte_pktmbuf_mtod(copy, void *), bytes, length);
		copy->data_len = length;
		copy->pkt_len = length;
		copy->ol_flags = came->ol_flags & (RTE_MBUF_F_RX_VLAN_STRIPPED | RTE_MBUF_F_RX_L4_CKSUM_MASK);
		copy->vlan_tci = came->vlan_tci;
		(*copied)++;
	} else {
		rte_pktmbuf_free(copy);
		copy = NULL;
	}
	rte_pktmbuf_free(came);
	return copy;
}

uint16_t tamis_rx_burst(uint16_t port, uint16_t queue, struct rte_mempool *pool, struct tamis_frame *frames,
			uint16_t most, struct tamis_received *received)
{
	struct rte_mbuf *mbufs[MOST];
	uint16_t came = rte_eth_rx_burst(port, queue, mbufs, RTE_MIN(most, MOST));
	uint16_t kept = 0;

	for (uint16_t at = 0; at < came; at++) {
		struct rte_mbuf *mbuf = own(mbufs[at], pool, &received->copied);
		uint64_t flags;

		if (unlikely(mbuf == NULL)) {
			received->lost++;
			continue;
		}
		rte_prefetch0(rte_pktmbuf_mtod(mbuf, void *));
		flags = mbuf->ol_flags;
		frames[kept++] = (struct tamis_frame){
			.mbuf = mbuf,
			.room = mbuf->buf_addr,
			.room_bytes = mbuf->buf_len,
			.start = mbuf->data_off,
			.length = mbuf->data_len,
			.tci = mbuf->vlan_tci,
			.flags = (flags & RTE_MBUF_F_RX_VLAN_STRIPPED ? IS_STRIPPED : 0) |
				 ((flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD ?
					  IS_VERIFIED : 0),
		};
	}
	return kept;
}

/* A copy of a frame, to be sent; -ENOBUFS if no mbuf is free, or it is shorter. */
int tamis_copy(struct rte_mempool *pool, const uint8_t *bytes, uint16_t length, struct tamis_leaving *copy)
{
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
	char *to = mbuf ? rte_pktmbuf_append(mbuf, length) : NULL;

	if (to == NULL) {
		rte_pktmbuf_free(mbuf);
		return -ENOBUFS;
	}
	memcpy(to, bytes, length);
	*copy = (struct tamis_leaving){ .mbuf = mbuf, .start = mbuf->data_off, .length = length };
	return 0;
}

/* Sends the first of these, as many as the device takes; their lengths are added to `bytes`. */
uint16_t tamis_tx_burst(uint16_t port, uint16_t queue, const struct tamis_leaving *leaving, uint16_t count,
			uint64_t *bytes)
{
	struct rte_mbuf *mbufs[MOST];
	uint16_t sent;

	count = RTE_MIN(count, MOST);
	for (uint16_t at = 0; at < count; at++) {
		struct rte_mbuf *mbuf = mbufs[at] = leaving[at].mbuf;

		mbuf->data_off = leaving[at].start;
		mbuf->data_len = leaving[at].length;
		mbuf->pkt_len = leaving[at].length;
		/* What was noted of the frame that was received there is gone. */
		mbuf->ol_flags = 0;
	}
	sent = rte_eth_tx_burst(port, queue, mbufs, count);
	for (uint16_t at = 0; at < sent; at++)
		*bytes += leaving[at].length;
	return sent;
}

void tamis_free(struct rte_mbuf **mbufs, unsigned count)
{
	rte_pktmbuf_free_bulk(mbufs, count);
}
