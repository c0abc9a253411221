package body

import (
	"errors"
	"strings"
	"testing"
)

// The room of an earlier body is used where that costs no more memory than the body claims to need.
func TestAllInto(t *testing.T) {
	text := strings.Repeat("a body ", 100)
	for name, c := range map[string]struct {
		room, size int
		most       int64
		used       bool
	}{
		"fits":                 {len(text) + 1, len(text), 1 << 20, true},
		"a little larger":      {len(text) * 3 / 2, len(text), 1 << 20, true},
		"far larger":           {1 << 16, len(text), 1 << 20, false},
		"too small":            {len(text), len(text), 1 << 20, false},
		"unknown size":         {len(text) + 1, 0, 1 << 20, false},
		"claims more":          {2 * expected, 4 * expected, 1 << 30, false},
		"too small by a claim": {len(text) + 1, 10, 1 << 20, false},
	} {
		memory := Memory{Most: c.most}
		in := NewInput(&memory, 1<<20)
		if err := in.Open("", strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		room := make([]byte, c.room)
		data, err := in.AllInto(room, c.size)
		if err != nil || string(data) != text {
			t.Errorf("%s: %q %v", name, data, err)
		}
		if used := &data[0] == &room[0]; used != c.used {
			t.Errorf("%s: the room is used: %v", name, used)
		}
		if memory.Used() < 2*int64(cap(data)) {
			t.Errorf("%s: %d bytes are held for a room of %d", name, memory.Used(), cap(data))
		}
		if in.Release(); memory.Used() != 0 {
			t.Errorf("%s: %d bytes stay held", name, memory.Used())
		}
	}
	memory := Memory{Most: 100}
	in := NewInput(&memory, 1<<20)
	if err := in.Open("", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	defer in.Release()
	if _, err := in.AllInto(make([]byte, len(text)+1), len(text)); !errors.Is(err, ErrMemory) {
		t.Errorf("no memory: %v", err)
	}
}
