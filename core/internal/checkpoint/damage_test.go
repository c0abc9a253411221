package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

// After any damage to the file, opening and reading it is a result or a sentence, and never a panic.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var d Delta
	for i := range 500 {
		d.Streams = append(d.Streams, Stream{Source: "s", Key: fmt.Sprint("key", i), Origin: strings.Repeat("x", 300), Pos: int64(i)})
		d.Groups = append(d.Groups, Group{Key: fmt.Sprint("group", i), Open: i%2 == 0, State: []byte(strings.Repeat("y", 400))})
	}
	if err := s.Commit(d); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "checkpoint.db")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(7, 7))
	damaged := 0
	for n := range 150 {
		b := append([]byte(nil), whole...)
		switch n % 3 {
		case 0:
			for range 20 {
				b[random.IntN(len(b))] ^= byte(1 + random.IntN(255))
			}
		case 1:
			b = b[:random.IntN(len(b))]
		default:
			page := random.IntN(len(b)/4096) * 4096
			copy(b[page:page+4096], make([]byte, 4096))
		}
		_ = os.Remove(path) // an Open that fails in the middle keeps the lock of the file until the process ends
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		err := func() error {
			s, err := Open(dir)
			if err != nil {
				return err
			}
			defer s.Close()
			if _, err := s.Streams(""); err != nil {
				return err
			}
			keys, err := s.OpenGroups()
			for _, k := range keys {
				if _, e := s.Group(k); e != nil {
					err = e
				}
			}
			return errors.Join(err, s.Commit(d))
		}()
		if errors.Is(err, ErrDamaged) {
			damaged++
		} else if err != nil {
			t.Logf("%d: %v", n, err)
		}
	}
	if damaged < 30 { // most bytes are of unused pages, or inside of a value that is not read
		t.Errorf("%d of 150 were found to be damaged", damaged)
	}
}

// TestOtherLayout: a checkpoint of a build with another layout is refused with the remedy, and is as it was.
func TestOtherLayout(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	later := func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Put([]byte("version"), []byte("3")) }
	if err := errors.Join(s.update(later), s.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "checkpoint.db")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "layout 3") || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed, or %v", err)
	}
}

// TestDamagedValues: a record that is none is damage, whichever way it is read.
func TestDamagedValues(t *testing.T) {
	s := open(t, t.TempDir())
	err := s.update(func(tx *bbolt.Tx) error {
		groups := tx.Bucket(bucketGroups)
		return errors.Join(tx.Bucket(bucketStreams).Put(streamKey("a", "1"), []byte("{")), groups.Put([]byte("empty"), nil), groups.Put([]byte("g"), []byte{1, 0xFF}))
	})
	if err != nil {
		t.Fatal(err)
	}
	_, all := s.Streams("")
	_, _, one := s.Stream("a", "1")
	_, group := s.Group("g")
	groups := s.Groups(func(string, []byte) error { return nil })
	for i, err := range []error{all, one, group, groups} {
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if g, err := s.Group("empty"); g != nil || err != nil {
		t.Errorf("an empty value: %q, %v", g, err)
	}
	if open, err := s.OpenGroups(); len(open) != 1 || err != nil {
		t.Errorf("open: %v, %v", open, err)
	}
}

// TestCutWhileOpen: a file that loses its end while it is open is damage, not the end of the program.
func TestCutWhileOpen(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var d Delta
	for i := range 200 {
		d.Streams = append(d.Streams, Stream{Source: "s", Key: fmt.Sprint(i), Origin: strings.Repeat("x", 500)})
	}
	commit(t, s, d)
	if err := os.Truncate(filepath.Join(dir, "checkpoint.db"), 2*4096); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Streams(""); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if err := s.Compact(); !errors.Is(err, ErrDamaged) {
		t.Errorf("compacted: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "checkpoint.db")); err != nil || info.Size() != 2*4096 {
		t.Errorf("the file was replaced, or %v", err)
	}
}
