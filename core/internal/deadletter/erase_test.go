package deadletter

import (
	"bytes"
	"os"
	"testing"
)

// TestErase removes entries from all files, with a torn one, and appends go on.
func TestErase(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(dir, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for n := range 9 {
		e := refused(t, n)
		if e.Session = "stays"; n%3 == 0 {
			e.Session = "confidential"
		}
		if err := l.Append(&e); err != nil {
			t.Fatal(err)
		}
		if n%4 == 3 {
			if err := l.rotate(); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	of := func(e *Entry) bool { return e.Session == "confidential" }
	want := 0
	for i := range before {
		if of(&before[i]) {
			want++
		}
	}
	if n, err := l.Erase(of); err != nil || n != want || n == 0 {
		t.Fatalf("%d of %d, %v", n, want, err)
	}
	more := refused(t, 100)
	if err := l.Append(&more); err != nil {
		t.Fatal(err)
	}
	after, err := Read(dir)
	if err != nil || len(after) != len(before)-want+1 {
		t.Errorf("%d entries of %d, %v", len(after), len(before), err)
	}
	for n := range keep {
		if b := readIf(path(dir, n)); bytes.Contains(b, []byte("confidential")) {
			t.Errorf("file %d has it", n)
		}
	}
}

func readIf(path string) []byte {
	b, _ := os.ReadFile(path) // there may be fewer files
	return b
}
