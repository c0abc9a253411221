package spool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// model compares a queue with a slice.
type model struct {
	*testing.T
	dir  string
	q    *Queue
	want []string
}

func (m *model) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *model) open() {
	m.Helper()
	q, err := Open(m.dir)
	m.must(err)
	q.limit = 200
	m.q = q
}

// last returns the path of the last segment; empty: there is none.
func (m *model) last() string {
	if n := len(m.q.segments); n > 0 {
		return m.q.path(m.q.segments[n-1].ID)
	}
	return ""
}

func (m *model) peek() {
	m.Helper()
	b, err := m.q.Peek()
	if len(m.want) == 0 {
		if !errors.Is(err, ErrEmpty) {
			m.Fatalf("%q, %v from an empty queue", b, err)
		}
		return
	}
	m.must(err)
	if string(b) != m.want[0] {
		m.Fatalf("got %q, want %q", b, m.want[0])
	}
}

// TestRandom appends, takes, dies in the middle of an append and opens the queue again:
// every record is read once, in order.
func TestRandom(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			m := &model{T: t, dir: t.TempDir()}
			m.open()
			for n := range 400 {
				switch k := r.IntN(10); {
				case k < 5:
					b := fmt.Sprint(n, strings.Repeat("x", r.IntN(120)))
					m.must(m.q.Append([]byte(b)))
					m.want = append(m.want, b)
				case k < 8:
					if m.peek(); len(m.want) > 0 {
						m.must(m.q.Take())
						m.want = m.want[1:]
					}
				case k == 8:
					m.must(m.q.Close())
					m.open()
				default: // a power cut in an append
					last := m.last()
					m.must(m.q.Close())
					if last != "" {
						f, err := os.OpenFile(last, os.O_APPEND|os.O_WRONLY, 0)
						m.must(err)
						_, err = f.Write(bytes.Repeat([]byte{0, 0, 0, 9, 1}, 1+r.IntN(3))[:1+r.IntN(5)])
						m.must(errors.Join(err, f.Close()))
					}
					m.open()
				}
				m.peek()
			}
			for len(m.want) > 0 {
				m.peek()
				m.must(m.q.Take())
				m.want = m.want[1:]
			}
			m.peek()
			if n := m.q.Size(); n != 0 {
				t.Errorf("%d bytes of an empty queue", n)
			}
			m.must(m.q.Close())
		})
	}
}

// TestDamage flips one bit of a record, in a segment that is full or in the last one,
// in its content or in its length: the record is lost and reported once, and all others
// are there.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		last bool
		at   int64 // of the bit's byte, behind the second record of the segment
	}{
		"content": {false, headSize + 3}, "length": {false, 3}, "long length": {false, 0}, "checksum": {false, 5},
		"content in the last": {true, headSize + 3}, "length in the last": {true, 3}, "long length in the last": {true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := &model{T: t, dir: t.TempDir()}
			m.open()
			for i := range 12 {
				m.must(m.q.Append(bytes.Repeat([]byte{byte('a' + i)}, 50)))
			}
			segment, want := m.q.path(m.q.segments[0].ID), "acdefghijkl"
			if c.last {
				segment, want = m.last(), "abcdefghikl"
			}
			m.must(m.q.Close())
			b, err := os.ReadFile(segment)
			m.must(err)
			b[headSize+50+c.at] ^= 2
			m.must(os.WriteFile(segment, b, 0o600))
			m.open()
			if n := m.q.Torn(); n != 0 {
				t.Errorf("%d bytes torn", n)
			}
			if got, damaged := m.rest(); got != want || damaged != 1 {
				t.Errorf("got %s, want %s; %d times damaged", got, want, damaged)
			}
			m.must(m.q.Close())
		})
	}
}

// TestDamageAtTheEnd has the very last record damaged, which no other record follows.
func TestDamageAtTheEnd(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	for _, s := range []string{"a", "b"} {
		m.must(m.q.Append([]byte(s)))
	}
	last := m.last()
	m.must(m.q.Close())
	b, err := os.ReadFile(last)
	m.must(err)
	b[len(b)-1] ^= 1
	m.must(os.WriteFile(last, b, 0o600))
	m.open()
	if got, damaged := m.rest(); got != "a" || damaged != 1 {
		t.Errorf("got %s, %d times damaged", got, damaged)
	}
	m.must(m.q.Close())
}

// rest takes the remaining records. It returns the first byte of each, and how often damage
// was reported.
func (m *model) rest() (got string, damaged int) {
	m.Helper()
	for {
		b, err := m.q.Peek()
		switch {
		case errors.Is(err, ErrEmpty):
			return got, damaged
		case errors.Is(err, ErrDamaged):
			damaged++
			continue
		}
		m.must(err)
		got += string(b[:1])
		m.must(m.q.Take())
	}
}

// TestBrokenDisk has a disk that fails: Append reports it, and the queue continues when the
// disk works again.
func TestBrokenDisk(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	m.must(m.q.Append([]byte("one")))
	m.must(m.q.out.Close()) // as if the device were gone
	if err := m.q.Append([]byte("two")); err == nil {
		t.Fatal("a closed file accepted a record")
	}
	m.must(m.q.Append([]byte("three")))
	m.want = []string{"one", "three"}
	for range 2 {
		m.peek()
		m.must(m.q.Take())
		m.want = m.want[1:]
	}
	m.peek()
	m.must(m.q.Close())
}

// TestCursor: a cursor that points nowhere costs no record, one of a removed segment keeps its number from being used again.
func TestCursor(t *testing.T) {
	for cursor, want := range map[string]string{
		"": "abcdef", "x": "abcdef", "1": "abcdef", "1 -5": "abcdef", "1 0": "abcdef", "1 58": "bcdef", "1 99999": "ef", "2 0": "ef", "2 58": "f", "2 99999": "", "7 3": "",
	} {
		m := &model{T: t, dir: t.TempDir()}
		m.open()
		for i := range 6 {
			m.must(m.q.Append(bytes.Repeat([]byte{byte('a' + i)}, 50)))
		}
		m.must(m.q.Close())
		m.must(os.WriteFile(filepath.Join(m.dir, cursorName), []byte(cursor), 0o600))
		m.open()
		m.must(m.q.Append([]byte("more")))
		m.must(m.q.Close())
		m.open()
		if got, damaged := m.rest(); got != want+"m" || damaged != 0 {
			t.Errorf("cursor %q: %s, %d times damaged, want %s", cursor, got, damaged, want)
		}
		m.must(m.q.Close())
	}
}

// TestLostSegment: a segment that cannot be read is an error, and neither damage nor the end.
func TestLostSegment(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	m.must(m.q.Append([]byte("a")))
	path := m.last()
	m.must(os.Rename(path, path+".aside"))
	if _, err := m.q.Peek(); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrDamaged) || errors.Is(err, ErrEmpty) {
		t.Errorf("%v", err)
	}
	if _, err := m.q.Rewrite(nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	m.must(os.Rename(path+".aside", path))
	if got, _ := m.rest(); got != "a" {
		t.Error(got)
	}
	m.must(m.q.Close())
	m.must(os.WriteFile(filepath.Join(m.dir, "file"), nil, 0o600))
	if _, err := Open(filepath.Join(m.dir, "file", "x")); err == nil {
		t.Error("opened a directory in a file")
	}
}

// TestDamageWhileOpen: records that follow a damaged one into its segment are there.
func TestDamageWhileOpen(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	m.must(m.q.Append([]byte("a")))
	m.must(os.WriteFile(m.last(), bytes.Repeat([]byte{7}, headSize+1), 0o600))
	if got, damaged := m.rest(); got != "" || damaged != 1 {
		t.Errorf("%q, %d times damaged", got, damaged)
	}
	m.must(m.q.Append([]byte("b")))
	if got, damaged := m.rest(); got != "b" || damaged != 0 {
		t.Errorf("%q, %d times damaged", got, damaged)
	}
	m.must(m.q.Close())
}

// TestDamageBeforeEmpty: an empty record behind a damaged one is found.
func TestDamageBeforeEmpty(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	m.must(m.q.Append([]byte("a")))
	m.must(m.q.Append(nil))
	m.must(os.WriteFile(m.last(), append(bytes.Repeat([]byte{7}, headSize+1), appendRecord(nil, nil)...), 0o600))
	if _, err := m.q.Peek(); !errors.Is(err, ErrDamaged) {
		t.Errorf("%v", err)
	}
	if b, err := m.q.Peek(); len(b) > 0 || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	m.must(m.q.Close())
}
