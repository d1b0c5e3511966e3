#!/bin/sh
# Compares tamis with the kernel that this runs under, in slices: packets without connections, frames on a bridge under
# legacy ebtables, and conversations. `make oracle-other` runs it under another kernel than this machine's.
#
#     crates/lab/other-kernel.sh ORACLE PACKETS      packets for each family; a quarter as many frames and packets in conversations
#
# Root. Before conversations it waits until the machine has been up for 16 minutes: what `--ctexpire` sees of a connection
# that is not confirmed depends on that (docs/packet-path.md).
oracle=$1 packets=$2 failed=0
modprobe -a tun veth bridge nfnetlink_log nf_log_syslog ip_tables ip6_tables ebtables ebtable_filter ebtable_nat \
    nf_nat_ftp nf_nat_tftp 2>/dev/null

uname -srv
for family in ip ip6; do
    echo "== $family"
    "$oracle" --packets "$packets" --family "$family" || failed=1
done
echo "== frames"
"$oracle" --frames $((packets / 4)) --ebtables legacy || failed=1
up=$(cut -d. -f1 /proc/uptime)
[ "$up" -ge 960 ] || sleep $((960 - up))
echo "== conversations"
"$oracle" --state $((packets / 8)) || failed=1
exit $failed
