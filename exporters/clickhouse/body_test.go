package clickhouse

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/ClickHouse/ch-go/compress"
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
	return &body{wire: newWire(chgo.CompressionNone), next: func(to *proto.Buffer) error {
		if at == len(messages) {
			return io.EOF
		}
		r.block.Reset()
		r.add(&messages[at])
		at++
		return r.block.Encode(to)
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
	b.next = func(*proto.Buffer) error { t.Error("a row was touched"); return io.EOF }
	b.wire = nil
	if n, err := b.Read(make([]byte, 10)); n != 0 || !errors.Is(err, errStopped) {
		t.Errorf("read %d bytes, error %v", n, err)
	}
}

// TestStopWaitsForARead is a Read that is under way while the request fails.
func TestStopWaitsForARead(t *testing.T) {
	b, _ := bodyOf(t, 5)
	next, reading, goOn := b.next, make(chan struct{}), make(chan struct{})
	b.next = func(to *proto.Buffer) error {
		close(reading)
		<-goOn
		return next(to)
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
	broken := errors.New("column c has 0 rows of 1")
	b.next = func(*proto.Buffer) error { return broken }
	if _, err := io.ReadAll(b); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if err := b.stop(); !errors.Is(err, broken) {
		t.Errorf("stop says nothing of it: %v", err)
	}
}

// TestBodyIsCompressed: each block is in a frame of its own, which the server opens.
func TestBodyIsCompressed(t *testing.T) {
	for _, method := range []chgo.CompressionMethod{chgo.CompressionLZ4, chgo.CompressionZSTD} {
		b, want := bodyOf(t, 5)
		b.wire = newWire(method)
		sent, err := io.ReadAll(b)
		if err != nil {
			t.Fatal(err)
		}
		opened, got := compress.NewReader(bytes.NewReader(sent)), make([]byte, len(want))
		if _, err := io.ReadFull(opened, got); err != nil || !bytes.Equal(got, want) || len(sent) >= len(want) {
			t.Errorf("%s: %d bytes, sent as %d: %v", method, len(want), len(sent), err)
		}
		if n, err := opened.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: more is sent: %v", method, err)
		}
	}
}
