#!/usr/bin/env python3
"""Writes a capture to measure with: capture.py PACKETS SECONDS FILE.

TCP and UDP packets of 60 bytes over Ethernet between 10.20.0.0/24 and 198.51.0.0/16, either way, ten well-known
ports, TCP with SYN, ACK, SYN and ACK or PSH and ACK, spread evenly over SECONDS. The same every time.
"""
import random
import struct
import sys

PORTS = [80, 443, 25, 53, 22, 5432, 8080, 6881, 123, 993]
ETHERNET = bytes.fromhex("0200000000020200000000010800")
START = 1795255200


def packet(number, draw):
    inside, outside = 0x0A140000 | draw & 0xFF, 0xC6330000 | draw >> 8 & 0xFFFF
    ends = [(inside, 1024 + (draw >> 24 & 0x7FFF)), (outside, PORTS[(draw >> 40) % 10])]
    if draw >> 60 & 1:
        ends.reverse()
    (source, source_port), (destination, destination_port) = ends
    is_tcp = (draw >> 50) % 4 != 0
    upper = struct.pack(">HH", source_port, destination_port)
    if is_tcp:
        upper += struct.pack(">IIBBHHH", 0, 0, 0x50, (2, 16, 24, 18)[draw >> 55 & 3], 512, 0, 0)
    else:
        upper += struct.pack(">HH", 26, 0) + bytes(12)
    fields = (0x45, 0, 46, number & 0xFFFF, 0, 64, 6 if is_tcp else 17, 0, source, destination)
    return ETHERNET + struct.pack(">BBHHHBBHII", *fields) + upper + bytes(6)


def main():
    packets, seconds, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    generator = random.Random(1)
    with open(name, "wb", buffering=1 << 22) as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number in range(packets):
            at = number * seconds * 1_000_000 // packets
            out.write(struct.pack("<IIII", START + at // 1_000_000, at % 1_000_000, 60, 60))
            out.write(packet(number, generator.getrandbits(64)))


main()
