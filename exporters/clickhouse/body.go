package clickhouse

import (
	"errors"
	"io"
	"sync"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2"
)

var errStopped = errors.New("insert is over")

// wire has the compressor and the buffer of encoding, kept from one insert to the next.
type wire struct {
	compress *compress.Writer // nil when nothing is compressed
	buf      proto.Buffer
}

func newWire(method chgo.CompressionMethod) *wire {
	switch method {
	case chgo.CompressionLZ4:
		return &wire{compress: compress.NewWriter(compress.LevelZero, compress.LZ4)}
	case chgo.CompressionZSTD:
		return &wire{compress: compress.NewWriter(compress.Level(1), compress.ZSTD)}
	}
	return &wire{}
}

// body is the body of an INSERT over HTTP: the blocks in Native format, each
// encoded when the one before it has been read.
//
// net/http reads it from a goroutine of its own, and may go on after the request
// has failed. The exporter uses the rows, and the wire, again by then: stop waits for a Read
// that is under way and refuses all others.
type body struct {
	mu   sync.Mutex
	next func(to *proto.Buffer) error
	wire *wire
	at   int
	err  error
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil && b.at == len(b.wire.buf.Buf) {
		b.at, b.err = 0, b.encode()
	}
	if b.err != nil {
		return 0, b.err
	}
	n := copy(p, b.wire.buf.Buf[b.at:])
	b.at += n
	return n, nil
}

// encode puts the next block into the buffer.
func (b *body) encode() error {
	w := b.wire
	w.buf.Reset()
	if err := b.next(&w.buf); err != nil || w.compress == nil {
		return err
	}
	if err := w.compress.Compress(w.buf.Buf); err != nil {
		return err
	}
	w.buf.Buf = append(w.buf.Buf[:0], w.compress.Data...)
	return nil
}

// stop ends the body's use of the rows, and returns the error of building
// the blocks, if there was one.
func (b *body) stop() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.err
	b.err = errStopped
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
