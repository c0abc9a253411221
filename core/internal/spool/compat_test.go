package spool

import (
	"bytes"
	"os"
	"testing"
)

// TestOpensEarlierData opens a queue that commit e43ec3e wrote: five of fourteen records
// are taken, and the last segment ends with a record that a crash interrupted. The rest
// is read in order, and a new record behind it.
func TestOpensEarlierData(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.must(os.CopyFS(m.dir, os.DirFS("testdata/e43ec3e")))
	m.open()
	if n := m.q.Torn(); n != 9 {
		t.Errorf("%d bytes torn, want 9", n)
	}
	for c := byte('f'); c <= 'n'; c++ {
		m.want = append(m.want, string(c)+string(bytes.Repeat([]byte{'.'}, 50)))
	}
	m.must(m.q.Append([]byte("later")))
	m.want = append(m.want, "later")
	for len(m.want) > 0 {
		m.peek()
		m.must(m.q.Take())
		m.want = m.want[1:]
	}
	m.peek()
	m.must(m.q.Close())
}
