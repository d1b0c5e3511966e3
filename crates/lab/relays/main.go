// Command relays is what crates/lab/relay.sh needs to measure tailscale's relays: its UDP peer relay without a control server,
// and clients of DERP that cost little. Keys are fixed.
//
//	relays peer-relay PORT                     the relay, with one endpoint; prints "ready", its key, and the endpoint's number
//	relays bind KEY NUMBER RELAY SIDE PORT     makes PORT of this host a side of the endpoint, 0 or 1
//	relays derp-load URL LENGTH SECONDS RATE   sends and receives; a rate of 0 is as fast as it goes; prints what was sent, and what arrived
//	                                           as `receive` of crates/cloud/src/workers/figures.rs does
//	relays derp-echo URL                       sends back what arrives
//	relays derp-delay URL COUNT                median and 99th percentile of the time that echoes of 200 bytes take, in microseconds
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"go4.org/mem"
	"tailscale.com/derp"
	"tailscale.com/disco"
	"tailscale.com/net/packet"
	"tailscale.com/net/udprelay"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"
	"tailscale.com/types/views"
	"tailscale.com/util/usermetric"
)

func main() {
	log.SetFlags(0)
	words := os.Args[2:]
	switch os.Args[1] {
	case "peer-relay":
		peerRelay(uint16(number(words[0])))
	case "bind":
		bind(words[0], uint32(number(words[1])), words[2], number(words[3]), number(words[4]))
	case "derp-echo":
		derpEcho(words[0])
	case "derp-load":
		derpLoad(words[0], number(words[1]), number(words[2]), number(words[3]))
	case "derp-delay":
		derpDelay(words[0], number(words[1]))
	default:
		log.Fatal(os.Args[1])
	}
}

func number(word string) int {
	return must(strconv.Atoi(word))
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func raw(side int) mem.RO {
	return mem.B(bytes.Repeat([]byte{byte(8 * (side + 1))}, 32))
}

func peerRelay(port uint16) {
	server := must(udprelay.NewServer(logger.Discard, port, true, new(usermetric.Registry), nil))
	at := []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("10.0.1.254"), port)}
	server.SetStaticAddrPorts(views.SliceOf(at))
	a, b := key.DiscoPrivateFromRaw32(raw(0)).Public(), key.DiscoPrivateFromRaw32(raw(1)).Public()
	endpoint := must(server.AllocateEndpoint(a, b))
	fmt.Println("ready", string(must(endpoint.ServerDisco.MarshalText())), endpoint.VNI)
	select {}
}

// bind is the handshake of a client: bind, challenge, answer.
func bind(server string, vni uint32, at string, side, port int) {
	var relay key.DiscoPublic
	if err := relay.UnmarshalText([]byte(server)); err != nil {
		log.Fatal(err)
	}
	own, other := key.DiscoPrivateFromRaw32(raw(side)), key.DiscoPrivateFromRaw32(raw(1-side)).Public()
	shared := own.Shared(relay)
	to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(at))
	conn := must(net.DialUDP("udp4", &net.UDPAddr{Port: port}, to))
	head := packet.GeneveHeader{Control: true, Protocol: packet.GeneveProtocolDisco}
	head.VNI.Set(vni)
	send := func(message disco.Message) {
		datagram := make([]byte, packet.GeneveFixedHeaderLength)
		if err := head.Encode(datagram); err != nil {
			log.Fatal(err)
		}
		datagram = own.Public().AppendTo(append(datagram, disco.Magic...))
		must(conn.Write(append(datagram, shared.Seal(message.AppendMarshal(nil))...)))
	}
	common := disco.BindUDPRelayEndpointCommon{VNI: vni, Generation: 1, RemoteKey: other}
	send(&disco.BindUDPRelayEndpoint{BindUDPRelayEndpointCommon: common})
	answer := make([]byte, 2048)
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	length := must(conn.Read(answer))
	sealed := answer[packet.GeneveFixedHeaderLength+len(disco.Magic)+key.DiscoPublicRawLen : length]
	opened, ok := shared.Open(sealed)
	if !ok {
		log.Fatal("a challenge of another")
	}
	challenge := must(disco.Parse(opened)).(*disco.BindUDPRelayEndpointChallenge)
	send(&disco.BindUDPRelayEndpointAnswer{BindUDPRelayEndpointCommon: challenge.BindUDPRelayEndpointCommon})
	head = packet.GeneveHeader{Protocol: packet.GeneveProtocolWireGuard}
	head.VNI.Set(vni)
	data := make([]byte, packet.GeneveFixedHeaderLength)
	if err := head.Encode(data); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("hex:%x\n", data)
}

const (
	sendPacket = 4
	recvPacket = 5
	frameHead  = 5
	keyLength  = 32
	// A connection's queue in a relay, of frames.
	window = 32
)

// dial is a connection of a client to a relay of DERP, after which frames are read and written by hand.
func dial(at string, side int) (net.Conn, *bufio.Reader) {
	place := must(url.Parse(at))
	conn := must(net.Dial("tcp", place.Host))
	both := bufio.NewReadWriter(bufio.NewReaderSize(conn, 1<<16), bufio.NewWriter(conn))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: DERP\r\nConnection: Upgrade\r\n\r\n", place.Path, place.Host)
	answer := must(http.ReadResponse(both.Reader, nil))
	if answer.StatusCode != http.StatusSwitchingProtocols {
		log.Fatal(answer.Status)
	}
	must(derp.NewClient(key.NodePrivateFromRaw32(raw(side)), conn, both, logger.Discard))
	return conn, both.Reader
}

// frame is what the other side is sent.
func frame(side int, payload []byte) []byte {
	to := key.NodePrivateFromRaw32(raw(1 - side)).Public()
	head := binary.BigEndian.AppendUint32([]byte{sendPacket}, uint32(keyLength+len(payload)))
	return append(to.AppendTo(head), payload...)
}

// each calls with each datagram, until there is none for as long as silence says after the first one.
func each(conn net.Conn, from *bufio.Reader, silence time.Duration, take func([]byte)) {
	head, payload := make([]byte, frameHead), make([]byte, 1<<16)
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		if _, err := io.ReadFull(from, head); err != nil {
			return
		}
		length := binary.BigEndian.Uint32(head[1:])
		if _, err := io.ReadFull(from, payload[:length]); err != nil {
			return
		}
		if head[0] == recvPacket {
			take(payload[keyLength:length])
			if from.Buffered() == 0 {
				conn.SetReadDeadline(time.Now().Add(silence))
			}
		}
	}
}

// derpLoad has at most `window` frames on their way: of more, the relay drops nearly all.
func derpLoad(at string, length, seconds, rate int) {
	to, from := dial(at, 1)
	conn, _ := dial(at, 0)
	var arrived, octets atomic.Int64
	go each(to, from, time.Minute, func(payload []byte) {
		octets.Add(int64(len(payload)))
		arrived.Add(1)
	})
	one := frame(0, make([]byte, length))
	frames := bytes.Repeat(one, window)
	var sent, lost int64
	since, moved, before := time.Now(), time.Now(), int64(0)
	for time.Since(since) < time.Duration(seconds)*time.Second {
		if now := arrived.Load(); now != before {
			before, moved = now, time.Now()
		}
		room := min(window, window-(sent-lost-before))
		if rate > 0 {
			room = min(room, int64(time.Since(since).Seconds()*float64(rate))-sent)
		}
		if room <= 0 {
			if time.Since(moved) > 10*time.Millisecond {
				lost = sent - before
			}
			time.Sleep(20 * time.Microsecond)
			continue
		}
		must(conn.Write(frames[:int(room)*len(one)]))
		sent += room
	}
	took := time.Since(since).Seconds()
	fmt.Printf("%d\n%d %d %.3f 0\n", sent, arrived.Load(), octets.Load(), took)
}

func derpEcho(at string) {
	conn, from := dial(at, 1)
	fmt.Println("ready")
	each(conn, from, time.Minute, func(payload []byte) { must(conn.Write(frame(1, payload))) })
}

func derpSend(at string, length, together, seconds, rate int) {
	conn, _ := dial(at, 0)
	frames := bytes.Repeat(frame(0, make([]byte, length)), together)
	sent, since := 0, time.Now()
	for time.Since(since) < time.Duration(seconds)*time.Second {
		if rate > 0 && float64(sent) > time.Since(since).Seconds()*float64(rate) {
			time.Sleep(200 * time.Microsecond)
			continue
		}
		must(conn.Write(frames))
		sent += together
	}
	fmt.Println(sent)
}

func derpDelay(at string, count int) {
	conn, from := dial(at, 0)
	echoes := make(chan time.Time, 1)
	go each(conn, from, time.Minute, func([]byte) { echoes <- time.Now() })
	datagram, times := frame(0, make([]byte, 200)), []float64{}
	for range count {
		since := time.Now()
		must(conn.Write(datagram))
		select {
		case then := <-echoes:
			times = append(times, float64(then.Sub(since).Nanoseconds())/1e3)
		case <-time.After(500 * time.Millisecond):
		}
		time.Sleep(time.Millisecond)
	}
	sort.Float64s(times)
	if len(times) > 0 {
		fmt.Printf("%.1f %.1f %d\n", times[len(times)*50/100], times[len(times)*99/100], len(times))
	}
}
