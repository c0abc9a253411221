package clickhouse

import (
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/ClickHouse/ch-go/proto"

	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

// bodyOf returns a body of that many blocks of one message each, and the bytes
// that it should return.
func bodyOf(t *testing.T, blocks int) (*body, []byte) {
	t.Helper()
	r := newMessageRows()
	messages := sampleMessages(blocks)
	var want proto.Buffer
	for i := range messages {
		r.block.Reset()
		r.add(&messages[i])
		if err := r.block.Encode(&want); err != nil {
			t.Fatal(err)
		}
	}
	at := 0
	return &body{block: r.block, wire: newWire(chgo.CompressionNone), next: func() bool {
		r.block.Reset()
		if at < len(messages) {
			r.add(&messages[at])
			at++
		}
		return r.block.Rows() > 0
	}}, want.Buf
}

func TestBodyReturnsEveryBlock(t *testing.T) {
	b, want := bodyOf(t, 5)
	if err := iotest.TestReader(b, want); err != nil {
		t.Error(err)
	}
	if err := b.stop(); err != nil {
		t.Errorf("after all of it: %v", err)
	}
}

// TestAStoppedBodyLeavesTheRowsAlone is net/http reading on after the request
// has failed and the rows have been released.
func TestAStoppedBodyLeavesTheRowsAlone(t *testing.T) {
	b, _ := bodyOf(t, 5)
	if _, err := io.ReadFull(b, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if err := b.stop(); err != nil {
		t.Errorf("stopped half way: %v", err)
	}
	b.next = func() bool { t.Error("a row was touched"); return false }
	b.wire = nil
	if n, err := b.Read(make([]byte, 10)); n != 0 || !errors.Is(err, errStopped) {
		t.Errorf("read %d bytes, error %v", n, err)
	}
}

// TestStopWaitsForARead is a Read that is under way while the request fails.
func TestStopWaitsForARead(t *testing.T) {
	b, _ := bodyOf(t, 5)
	next, reading, goOn := b.next, make(chan struct{}), make(chan struct{})
	b.next = func() bool {
		close(reading)
		<-goOn
		return next()
	}
	read := make(chan error, 1)
	go func() {
		_, err := b.Read(make([]byte, 10))
		read <- err
	}()
	<-reading
	if b.mu.TryLock() { // stop waits for it
		t.Error("a Read does not keep stop out")
	}
	close(goOn)
	if err := <-read; err != nil {
		t.Error(err)
	}
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}

func TestABrokenBlockIsReported(t *testing.T) {
	b, _ := bodyOf(t, 1)
	next := b.next
	b.next = func() bool {
		more := next()
		b.block.Columns[3].Column.Reset()
		return more
	}
	if _, err := io.ReadAll(b); err == nil {
		t.Error("no error")
	}
	if err := b.stop(); err == nil {
		t.Error("stop says nothing of it")
	}
}
