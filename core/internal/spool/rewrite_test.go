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

// TestRewriteOfDamage: a damaged record stays for Peek to report, between records that are rewritten.
func TestRewriteOfDamage(t *testing.T) {
	m := &model{T: t, dir: t.TempDir()}
	m.open()
	for _, r := range []string{"a plain", "b plain", "c plain", "d plain"} {
		m.must(m.q.Append([]byte(r)))
	}
	path := m.last()
	b, err := os.ReadFile(path)
	m.must(err)
	b[2*headSize+7+1] ^= 1 // in b
	m.must(os.WriteFile(path, b, 0o600))
	n, err := m.q.Rewrite(func(b []byte) ([]byte, bool, error) { return append(b, " and more"...), b[0] != 'd', nil })
	m.must(err)
	if size := m.q.Size(); n != 2 || size != 4*(headSize+7)+3*int64(len(" and more")) {
		t.Errorf("%d are changed, %d bytes", n, size)
	}
	m.want = []string{"a plain and more"}
	m.peek()
	m.must(m.q.Take())
	if _, err := m.q.Peek(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "15 bytes from 24 on") {
		t.Errorf("%v", err)
	}
	if got, damaged := m.rest(); got != "cd" || damaged != 0 {
		t.Errorf("%s, %d times damaged", got, damaged)
	}
	m.must(m.q.Close())
}

// TestRewriteFails: the queue is as it was when a record cannot be changed.
func TestRewriteFails(t *testing.T) {
	m := &model{T: t, dir: t.TempDir(), want: []string{"a", "b"}}
	m.open()
	for _, r := range m.want {
		m.must(m.q.Append([]byte(r)))
	}
	m.peek()
	no := errors.New("no")
	n, err := m.q.Rewrite(func(b []byte) ([]byte, bool, error) {
		if b[0] == 'b' {
			return nil, true, no
		}
		return []byte("x"), true, nil
	})
	if n != 0 || !errors.Is(err, no) {
		t.Errorf("%d are changed: %v", n, err)
	}
	if n, err := m.q.Rewrite(func(b []byte) ([]byte, bool, error) { return b, false, nil }); n != 0 || err != nil {
		t.Errorf("%d are changed: %v", n, err)
	}
	if got, _ := m.rest(); got != "ab" {
		t.Error(got)
	}
	m.must(m.q.Close())
}
