package reassemble

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
)

// piece writes one frame.
func piece(first byte, payload []byte, mask bool) []byte {
	out := []byte{first}
	bit := byte(0)
	if mask {
		bit = 0x80
	}
	switch n := len(payload); {
	case n < 126:
		out = append(out, bit|byte(n))
	case n < 1<<16:
		out = binary.BigEndian.AppendUint16(append(out, bit|126), uint16(n))
	default:
		out = binary.BigEndian.AppendUint64(append(out, bit|127), uint64(n))
	}
	if !mask {
		return append(out, payload...)
	}
	key := [4]byte{0x12, 0xf0, 0x7c, 0x99}
	out = append(out, key[:]...)
	for i, c := range payload {
		out = append(out, c^key[i&3])
	}
	return out
}

// writer writes messages as a peer does.
type writer struct {
	out      bytes.Buffer
	rng      *rand.Rand
	mask     bool
	deflate  Deflate
	z        *flate.Writer
	zip      bytes.Buffer
	messages []string
}

func (w *writer) message(text string, binary bool) {
	payload, first := []byte(text), byte(opText)
	if binary {
		first = opBinary
	}
	if w.deflate.On && w.rng.IntN(4) > 0 { // a message may go uncompressed
		first |= 0x40
		if w.z == nil || !w.deflate.Takeover {
			w.z, _ = flate.NewWriter(&w.zip, 6)
		}
		w.zip.Reset()
		_, _ = w.z.Write(payload)
		_ = w.z.Flush()
		payload = bytes.TrimSuffix(bytes.Clone(w.zip.Bytes()), []byte("\x00\x00\xff\xff"))
	}
	for n := 1 + w.rng.IntN(3); n > 1 && len(payload) > 0; n-- {
		k := w.rng.IntN(len(payload) + 1)
		w.out.Write(piece(first, payload[:k], w.mask))
		first, payload = opContinue, payload[k:]
		if w.rng.IntN(2) == 0 { // a control frame between the fragments
			w.out.Write(piece(0x80|9+byte(w.rng.IntN(2)), []byte("ping"), w.mask))
		}
	}
	w.out.Write(piece(0x80|first, payload, w.mask))
	kind := "text"
	if binary {
		kind = "binary"
	}
	w.messages = append(w.messages, kind+" "+text)
}

func show(frames []frame.Frame) (out []string) {
	for _, f := range frames {
		s := f.Kind.String() + " " + string(f.Data)
		if f.Reason != "" {
			s += " !" + f.Reason
		}
		out = append(out, s)
	}
	return out
}

func feed(a *Assembler, stream []byte, rng *rand.Rand) ([]frame.Frame, error) {
	var b frame.Batch
	for len(stream) > 0 {
		n := len(stream)
		if rng != nil {
			n = 1 + rng.IntN(min(n, 1+rng.IntN(5000)))
		}
		if err := a.Feed(&b, stream[:n], 1); err != nil {
			return b.Frames, err
		}
		stream = stream[n:]
	}
	return b.Frames, nil
}

// Any messages, in any fragments, compressed in any agreed way, come back, however
// the bytes are cut.
func TestAnyCutGivesTheMessages(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := &writer{rng: rng, mask: seed%2 == 0, deflate: []Deflate{{}, {On: true}, {On: true, Takeover: true}}[seed%3]}
		for range rng.IntN(12) {
			text := strings.Repeat(fmt.Sprintf(`{"n":%d,"text":"grüße"} `, rng.IntN(50)), rng.IntN(1+rng.IntN(4000)))
			w.message(text, rng.IntN(3) == 0)
		}
		w.out.Write(piece(0x80|opClose, []byte("\x03\xe8"), w.mask))
		w.out.WriteString("what follows is nothing")
		a := New(1<<20, w.mask, w.deflate)
		frames, err := feed(a, w.out.Bytes(), rng)
		if got, want := show(frames), w.messages; err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Fatalf("seed %d: %v, %d messages, want %d", seed, err, len(got), len(want))
		}
		if !a.Closed() || a.Open() || a.Held() > windowSize {
			t.Fatalf("seed %d: closed %v, open %v, %d bytes held", seed, a.Closed(), a.Open(), a.Held())
		}
		for _, f := range frames {
			if f.FromClient != w.mask || f.At != 1 {
				t.Fatalf("seed %d: %+v", seed, f)
			}
		}
	}
}

func TestByteByByte(t *testing.T) {
	w := &writer{rng: rand.New(rand.NewPCG(1, 1)), mask: true, deflate: Deflate{On: true, Takeover: true}}
	for i := range 5 {
		w.message(strings.Repeat("abc ", 100*i), i%2 == 0)
	}
	a := New(1<<20, true, w.deflate)
	var b frame.Batch
	for _, c := range w.out.Bytes() {
		if err := a.Feed(&b, []byte{c}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if got := show(b.Frames); strings.Join(got, "\n") != strings.Join(w.messages, "\n") {
		t.Errorf("%q", got)
	}
}

func TestBytesThatAreNone(t *testing.T) {
	deflated := Deflate{On: true}
	for name, c := range map[string]struct {
		deflate Deflate
		bytes   string
	}{
		"reserved bit":            {deflated, "\xa1\x00"},
		"compressed without word": {Deflate{}, "\xc1\x00"},
		"compressed control":      {deflated, "\xc9\x00"},
		"compressed continuation": {deflated, "\x41\x00\xc0\x00"},
		"long control":            {Deflate{}, "\x89\x7e\x00\x7e"},
		"fragmented control":      {Deflate{}, "\x09\x00"},
		"continues nothing":       {Deflate{}, "\x80\x00"},
		"begins in the middle":    {Deflate{}, "\x01\x00\x81\x00"},
		"opcode 3":                {Deflate{}, "\x83\x00"},
		"longer than the world":   {Deflate{}, "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"},
		"not deflate":             {deflated, "\xc1\x04\xff\xff\xff\xff"},
	} {
		a := New(1<<10, false, c.deflate)
		if _, err := feed(a, []byte(c.bytes), nil); err == nil {
			t.Errorf("%s: no error", name)
		}
		if frames, err := feed(a, []byte("\x81\x01x"), nil); err == nil || len(frames) > 0 {
			t.Errorf("%s: goes on with %v", name, show(frames))
		}
	}
}

func TestBeyondTheLimit(t *testing.T) {
	const limit = 1000
	long, ok := strings.Repeat("x", 3000), "ok"
	w := &writer{rng: rand.New(rand.NewPCG(1, 1))}
	w.message(long, false)
	w.message(ok, false)
	frames, err := feed(New(limit, false, Deflate{}), w.out.Bytes(), nil)
	if got := show(frames); err != nil || len(got) != 2 || got[0] != "text "+long[:limit]+" !too_long" || got[1] != "text ok" || frames[0].Dropped != 2000 {
		t.Errorf("%v %.50q", err, got)
	}

	// A short message that inflates to a long one: the head is kept, and the window
	// with it, so that the next one can be read.
	w = &writer{rng: rand.New(rand.NewPCG(2, 2)), deflate: Deflate{On: true, Takeover: true}}
	for len(w.messages) < 8 {
		w.message(long, false)
		w.message(long[:100]+ok, false)
	}
	frames, err = feed(New(limit, false, w.deflate), w.out.Bytes(), nil)
	if err != nil || len(frames) != len(w.messages) {
		t.Fatalf("%v, %d messages", err, len(frames))
	}
	for i, f := range frames {
		want := w.messages[i]
		if len(want) > limit+5 {
			want = want[:limit+5]
		}
		if string(f.Data) != want[5:] || (f.Reason != "") != (f.Dropped > 0) || f.Dropped > 0 != (i%2 == 0) {
			t.Errorf("%d: %d bytes, %q, %d dropped", i, len(f.Data), f.Reason, f.Dropped)
		}
	}
}

// A message that inflates to a thousand times its size takes neither memory nor
// much time.
func TestBomb(t *testing.T) {
	var zip bytes.Buffer
	z, _ := flate.NewWriter(&zip, 1)
	zeros := make([]byte, 1<<20)
	for range 16 {
		_, _ = z.Write(zeros)
	}
	_ = z.Flush()
	stream := piece(0xc2, bytes.TrimSuffix(zip.Bytes(), []byte("\x00\x00\xff\xff")), false)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	a := New(1<<20, false, Deflate{On: true, Takeover: true})
	frames, err := feed(a, stream, nil)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if err == nil || len(frames) != 1 || frames[0].Reason != "content_encoding" {
		t.Errorf("%v %d frames", err, len(frames))
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	runtime.KeepAlive(a)
}

// A message without end, and one of endless fragments, are bounded.
func TestMemoryIsBounded(t *testing.T) {
	const limit = 1 << 10
	chunk := bytes.Repeat([]byte("x"), 64<<10)
	for name, head := range map[string]string{"long": "\x82\x7f\x00\x00\x00\x10\x00\x00\x00\x00", "fragments": "\x02\x00"} {
		a := New(limit, false, Deflate{})
		var b frame.Batch
		_ = a.Feed(&b, []byte(head), 1)
		for range 64 {
			if name == "fragments" {
				_ = a.Feed(&b, piece(opContinue, chunk, false), 1)
			} else {
				_ = a.Feed(&b, chunk, 1)
			}
		}
		if a.Held() > limit || cap(a.data) > 2*limit || len(b.Frames) > 0 {
			t.Errorf("%s: %d bytes held", name, cap(a.data))
		}
		a.Abandon(&b, 2, "connection_lost")
		if len(b.Frames) != 1 || b.Frames[0].Reason != "connection_lost" || b.Frames[0].Dropped != 64*64<<10-limit {
			t.Errorf("%s: %v", name, b.Frames)
		}
	}
}

func TestAgreed(t *testing.T) {
	both := Deflate{On: true, Takeover: true}
	for _, c := range []struct {
		header         []string
		client, server Deflate
		ok             bool
	}{
		{nil, Deflate{}, Deflate{}, true},
		{[]string{""}, Deflate{}, Deflate{}, true},
		{[]string{"permessage-deflate"}, both, both, true},
		{[]string{"permessage-deflate; client_no_context_takeover; server_max_window_bits=10"}, Deflate{On: true}, both, true},
		{[]string{"PerMessage-Deflate;server_no_context_takeover"}, both, Deflate{On: true}, true},
		{[]string{"permessage-deflate", "x-odd"}, Deflate{}, Deflate{}, false},
		{[]string{"permessage-deflate, permessage-deflate"}, Deflate{}, Deflate{}, false},
	} {
		client, server, ok := Agreed(c.header)
		if client != c.client || server != c.server || ok != c.ok {
			t.Errorf("%q: %+v %+v %v", c.header, client, server, ok)
		}
	}
}

// For all bytes: no panic, the same result for every cut, no more out than in
// and agreed limits kept.
func FuzzAssembler(f *testing.F) {
	w := &writer{rng: rand.New(rand.NewPCG(1, 1)), deflate: Deflate{On: true, Takeover: true}}
	w.message("hello", false)
	w.message(strings.Repeat("again ", 50), true)
	f.Add(w.out.Bytes(), uint64(1))
	f.Add([]byte("\x81\x85\x00\x00\x00\x00hello\x88\x00"), uint64(2))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		for _, d := range []Deflate{{}, {On: true}, {On: true, Takeover: true}} {
			whole, err1 := feed(New(100, false, d), stream, nil)
			cut, err2 := feed(New(100, false, d), stream, rand.New(rand.NewPCG(seed, 1)))
			if strings.Join(show(whole), "\n") != strings.Join(show(cut), "\n") || (err1 == nil) != (err2 == nil) {
				t.Fatalf("%q and %q, %v and %v", show(whole), show(cut), err1, err2)
			}
			for _, f := range whole {
				if len(f.Data) > 100 {
					t.Fatalf("%d bytes", len(f.Data))
				}
			}
		}
	})
}

func BenchmarkFeed(b *testing.B) {
	for name, d := range map[string]Deflate{"plain": {}, "deflate": {On: true, Takeover: true}} {
		b.Run(name, func(b *testing.B) {
			w := &writer{rng: rand.New(rand.NewPCG(1, 1)), mask: true, deflate: d}
			for i := range 200 {
				w.message(strings.Repeat(fmt.Sprintf(`{"type":"delta","n":%d,"text":"and so on"} `, i), 20), false)
			}
			b.SetBytes(int64(w.out.Len()))
			b.ReportAllocs()
			for b.Loop() {
				var out frame.Batch
				if err := New(1<<20, true, d).Feed(&out, w.out.Bytes(), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
