package spool

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRewrite changes records in all places of a queue: before and behind one that is being
// delivered, in segments that are full and in the last, and across a restart. Every other record
// is delivered once and as it was, and the bytes of before are in no file.
func TestRewrite(t *testing.T) {
	for taken := range 12 {
		m := &model{T: t, dir: t.TempDir()}
		m.open()
		for i := range 20 {
			r := fmt.Sprintf("%d plain record", i)
			if i%3 == 0 {
				r = fmt.Sprintf("%d confidential record", i)
			}
			m.must(m.q.Append([]byte(r)))
			m.want = append(m.want, r)
		}
		for range taken {
			m.peek()
			m.must(m.q.Take())
			m.want = m.want[1:]
		}
		m.peek() // an exporter is being offered the next one
		n, err := m.q.Rewrite(func(b []byte) ([]byte, bool, error) {
			if !bytes.Contains(b, []byte("confidential")) {
				return b, false, nil
			}
			return bytes.Replace(b, []byte(" confidential record"), nil, 1), true, nil
		})
		m.must(err)
		want := 0
		for i, r := range m.want {
			if strings.Contains(r, "confidential") {
				want++
				m.want[i] = strings.TrimSuffix(r, " confidential record")
			}
		}
		if n != want {
			t.Errorf("%d taken: %d of %d are changed", taken, n, want)
		}
		files, err := filepath.Glob(filepath.Join(m.dir, "*"))
		m.must(err)
		for _, f := range files {
			if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("confidential")) {
				t.Errorf("%d taken: %s has it: %v", taken, f, err)
			}
		}
		m.must(m.q.Take())
		m.want = m.want[1:]
		m.must(m.q.Append([]byte("more")))
		m.want = append(m.want, "more")
		if taken%2 == 0 {
			m.must(m.q.Close())
			m.open()
		}
		for len(m.want) > 0 {
			m.peek()
			m.must(m.q.Take())
			m.want = m.want[1:]
		}
		if _, err := m.q.Peek(); !errors.Is(err, ErrEmpty) {
			t.Errorf("%d taken: %v at the end", taken, err)
		}
		m.must(m.q.Close())
	}
}
