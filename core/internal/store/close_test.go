package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAHungStoreEnds closes a store that has started and answers nothing any more.
func TestAHungStoreEnds(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "hangs")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\ntrap '' INT TERM\necho listening on nothing\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Settings{Dir: filepath.Join(dir, "store"), Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.Close()
	if took := time.Since(began); took >= endTime {
		t.Errorf("it took %s", took)
	}
	select {
	case <-s.proc.exited:
	default:
		t.Error("it still runs")
	}
}
