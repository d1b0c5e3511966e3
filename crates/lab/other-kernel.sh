#!/bin/sh
# Compares tamis with the kernel that this runs under, in slices: packets without connections, frames on a bridge under
# legacy ebtables, and conversations. `make oracle-other` runs it under another kernel than this machine's.
#
#     crates/lab/other-kernel.sh ORACLE PACKETS      packets for each family; a quarter as many frames and packets in conversations
#     crates/lab/other-kernel.sh ORACLE PACKETS nft  the same of rulesets of nft, of the families ip, ip6 and inet
#
# Root. Before conversations, and before nft, it waits until the machine has been up for 16 minutes: what `--ctexpire` sees of a connection
# that is not confirmed depends on that (docs/packet-path.md).
oracle=$1 packets=$2 rules=${3:-xtables} failed=0
modprobe -a tun veth bridge nfnetlink_log nf_log_syslog ip_tables ip6_tables ebtables ebtable_filter ebtable_nat \
    nf_nat_ftp nf_nat_tftp nf_tables nft_ct 2>/dev/null

wait_for_the_clock() {
    up=$(cut -d. -f1 /proc/uptime)
    [ "$up" -ge 960 ] || sleep $((960 - up))
}

uname -srv
if [ "$rules" = nft ]; then
    nft --version
    wait_for_the_clock
    for family in ip ip6 inet; do
        echo "== nft, $family"
        "$oracle" nft --packets "$packets" --family "$family" --threads 2 --failures 1000 --shrink no || failed=1
    done
    exit $failed
fi
for family in ip ip6; do
    echo "== $family"
    "$oracle" --packets "$packets" --family "$family" || failed=1
done
echo "== frames"
"$oracle" --frames $((packets / 4)) --ebtables legacy || failed=1
wait_for_the_clock
echo "== conversations"
"$oracle" --state $((packets / 8)) || failed=1
exit $failed
