package spool

import (
	"bytes"
	"testing"
)

// BenchmarkQueue appends a batch of a usual size, reads and takes it, with one batch before
// it that stays.
func BenchmarkQueue(b *testing.B) {
	q, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	batch := bytes.Repeat([]byte("batch "), 32<<10)
	if err := q.Append(batch); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for b.Loop() {
		if err := q.Append(batch); err != nil {
			b.Fatal(err)
		}
		if _, err := q.Peek(); err != nil {
			b.Fatal(err)
		}
		if err := q.Take(); err != nil {
			b.Fatal(err)
		}
	}
}
