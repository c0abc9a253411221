package spool

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// model holds a queue to a slice.
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
	q.most = 200
	m.q = q
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

// TestRandom appends and takes, dies in the middle of an append and begins again:
// everything comes, in order, once.
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
					last, has := m.q.last(), len(m.q.ids) > 0
					m.must(m.q.Close())
					if has {
						f, err := os.OpenFile(m.q.path(last), os.O_APPEND|os.O_WRONLY, 0)
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

// Damage costs the rest of its segment, is told, and what follows comes.
func TestDamage(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	for i := range 12 {
		m.must(m.q.Append(bytes.Repeat([]byte{byte('a' + i)}, 50)))
	}
	first := m.q.path(m.q.ids[0])
	m.must(m.q.Close())
	b, err := os.ReadFile(first)
	m.must(err)
	b[headSize+50+headSize+3] ^= 1 // in the second of four
	m.must(os.WriteFile(first, b, 0o600))
	m.open()
	var got strings.Builder
	damaged := 0
	for {
		b, err := m.q.Peek()
		if errors.Is(err, ErrEmpty) {
			break
		}
		if errors.Is(err, ErrDamaged) {
			damaged++
			continue
		}
		m.must(err)
		got.WriteByte(b[0])
		m.must(m.q.Take())
	}
	if got.String() != "aefghijkl" || damaged != 1 {
		t.Errorf("got %s, %d times damaged", got.String(), damaged)
	}
	m.must(m.q.Close())
}

// What a broken disk did not take is told, and the queue goes on when it is whole.
func TestBrokenDisk(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	m.must(m.q.Append([]byte("one")))
	m.must(m.q.out.Close()) // as if the device were gone
	if err := m.q.Append([]byte("two")); err == nil {
		t.Fatal("taken by a closed file")
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
