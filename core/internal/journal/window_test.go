package journal

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestWindowEnds has a record that fills the window, and bytes behind it that are none: they are lost, and no more.
func TestWindowEnds(t *testing.T) {
	data := appendRecord(nil, 1, &record{kind: kindMark, payload: make([]byte, windowSize-headSize)})
	data = append(data, "10 letters"...)
	w := window{in: bytes.NewReader(data), seed: 1, lost: 5}
	var r record
	if ok, err := w.next(&r, int64(len(data)), true); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if ok, err := w.next(&r, int64(len(data)), true); ok || err != nil || w.lost != 15 || w.off != int64(len(data)) {
		t.Errorf("%v %v, %d are lost, at %d of %d", ok, err, w.lost, w.off, len(data))
	}
}

// TestWindowKeepsTheLimit: bytes behind the limit are not read, because it may still change.
func TestWindowKeepsTheLimit(t *testing.T) {
	one := appendRecord(nil, 1, &record{kind: kindMark, payload: []byte("one")})
	two := appendRecord(nil, 1, &record{kind: kindMark, payload: []byte("two")})
	file := append(bytes.Clone(one), bytes.Repeat([]byte{0}, len(two))...)
	w := window{in: bytes.NewReader(file), seed: 1}
	var r record
	if ok, err := w.next(&r, int64(len(one)), true); !ok || err != nil || string(r.payload) != "one" {
		t.Fatal(ok, err)
	}
	copy(file[len(one):], two)
	if ok, err := w.next(&r, int64(len(file)), true); !ok || err != nil || string(r.payload) != "two" || w.lost > 0 {
		t.Errorf("%v %v, %q, %d are lost", ok, err, r.payload, w.lost)
	}
}

// TestWindowTakesLittleMemory: its buffer is used again, and one for a longer record is released.
func TestWindowTakesLittleMemory(t *testing.T) {
	var data []byte
	for range 80 {
		data = appendRecord(data, 1, &record{kind: kindMark, payload: make([]byte, 100<<10)})
	}
	before := allocated()
	if end, lost, err := scan(bytes.NewReader(data), 1, int64(len(data)), func(*record) error { return nil }); end != int64(len(data)) || lost > 0 || err != nil {
		t.Fatal(end, lost, err)
	}
	if n := allocated() - before; n > windowSize+windowSize/2 {
		t.Errorf("%d bytes for the records of %d", n, len(data))
	}
	long := appendRecord(nil, 1, &record{kind: kindMark, payload: make([]byte, 3*windowSize)})
	w := window{in: bytes.NewReader(append(long, data...)), seed: 1}
	for range 2 {
		if ok, err := w.next(new(record), int64(len(long)+len(data)), true); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := cap(w.mem); n > windowSize {
		t.Errorf("%d bytes are kept", n)
	}
}

func allocated() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// TestRepeatedStrings: one copy is kept of a thousand short strings, and of no others.
func TestRepeatedStrings(t *testing.T) {
	names := make(interned)
	for i := range 3000 {
		for _, text := range []string{fmt.Sprintf("%064d", i), strings.Repeat("x", 65)} {
			if got := names.get([]byte(text)); got != text {
				t.Fatalf("%q of %q", got, text)
			}
		}
	}
	if n := len(names); n != 1024 || names[strings.Repeat("x", 65)] != "" {
		t.Errorf("%d are kept", n)
	}
}

// TestSegmentsAreBounded: a segment has no more than its size and one record: frames, marks or gaps.
func TestSegmentsAreBounded(t *testing.T) {
	s := still(t, t.TempDir())
	s.SegmentSize = 4 << 10
	j := open(t, s)
	r := begin(t, j, "a")
	for i := range 20 {
		if err := r.Mark(bytes.Repeat([]byte{byte(i)}, 1000)); err != nil {
			t.Fatal(err)
		}
		put(t, r, strings.Repeat("x", 1000))
		r.Gap("slow", 1, 1)
	}
	sync_(t, r)
	for _, path := range files(t, s.Dir, "seg") {
		if n := info(t, path).Size(); n > s.SegmentSize+1200 {
			t.Errorf("%d bytes in a segment of %d", n, s.SegmentSize)
		}
	}
}
