package wire

import (
	"bytes"
	"runtime"
	"testing"

	"google.golang.org/grpc/mem"
)

// TestBufferIsUsedAgain receives requests of sizes that differ, as a decoder does for
// hours: its allocations do not grow with their number, and a giant one does not
// stay.
func TestBufferIsUsedAgain(t *testing.T) {
	var req Request
	receive := func(size int) {
		out, err := (&Request{Batches: []Batch{{Stream: 1, Data: make([]byte, size)}}}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Unmarshal(out); err != nil {
			t.Fatal(err)
		}
		if len(req.Batches) != 1 || len(req.Batches[0].Data) != size {
			t.Fatalf("%d bytes came back", len(req.Batches[0].Data))
		}
		req.Free()
	}
	const largest = 1 << 20
	data := mem.BufferSlice{mem.SliceBuffer(make([]byte, largest))}
	var b buffer
	b.fill(data)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for n := range 200 {
		b.fill(mem.BufferSlice{mem.SliceBuffer(data[0].ReadOnlyData()[:largest/2+n*1000])})
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > largest {
		t.Errorf("200 messages of at most %d bytes took %d", largest, n)
	}
	receive(largest)
	if cap(req.buf) < largest {
		t.Error("the buffer of an ordinary request is not kept")
	}
	receive(2 * keep)
	if req.buf != nil {
		t.Errorf("a buffer of %d bytes stays", cap(req.buf))
	}
}

// TestResponseIsNotCopied checks that gRPC sends the response's own buffer, that the
// response goes on with another, and that the first is reused once it is sent.
func TestResponseIsNotCopied(t *testing.T) {
	c := NewCodec()
	var resp Response
	send := func(snapshot []byte) mem.BufferSlice {
		resp.Append(&Batch{Stream: 7}, nil, nil, snapshot, nil)
		out, err := c.Marshal(&resp)
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Bytes()) != 0 {
			t.Fatal("the response still has what is being sent")
		}
		return out
	}
	big := bytes.Repeat([]byte("x"), 1<<20)
	first := send(big)
	second := send(bytes.Repeat([]byte("y"), 1<<20))
	if got := first.Materialize(); bytes.Count(got, []byte("x")) != len(big) {
		t.Error("the first message changed while it was being sent")
	}
	first.Free()
	second.Free()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 50 {
		out := send(big)
		out.Free()
		resp.Reset()
	}
	runtime.ReadMemStats(&after)
	// Under the race detector a pool drops some of its buffers.
	if n := after.TotalAlloc - before.TotalAlloc; n > 40<<20 {
		t.Errorf("50 messages of 1 MiB took %d MiB", n>>20)
	}
}
