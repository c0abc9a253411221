package clickhouse

import (
	"errors"
	"io"
	"sync"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	chgo "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/earshot-dev/earshot/exporters/clickhouse/internal/native"
)

var errStopped = errors.New("insert is over")

// body is the body of an INSERT over HTTP: the blocks in Native format, each
// encoded when the one before it has been read.
//
// net/http reads it from a goroutine of its own, and may go on after the request
// has failed. The rows are not ours by then: stop waits for a Read that is under
// way and refuses all others.
type body struct {
	mu       sync.Mutex
	block    *native.Block
	next     blocks
	compress *compress.Writer
	buf      proto.Buffer
	at       int
	err      error
}

func newBody(block *native.Block, next blocks, method chgo.CompressionMethod) *body {
	b := &body{block: block, next: next}
	switch method {
	case chgo.CompressionLZ4:
		b.compress = compress.NewWriter(compress.LevelZero, compress.LZ4)
	case chgo.CompressionZSTD:
		b.compress = compress.NewWriter(compress.Level(1), compress.ZSTD)
	}
	return b
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.at == len(b.buf.Buf) {
		if b.err != nil {
			return 0, b.err
		}
		b.encode()
	}
	n := copy(p, b.buf.Buf[b.at:])
	b.at += n
	return n, nil
}

// encode puts the next block into the buffer, or sets err.
func (b *body) encode() {
	b.buf.Reset()
	b.at = 0
	if !b.next() {
		b.err = io.EOF
		return
	}
	if b.err = b.block.Encode(&b.buf); b.err != nil || b.compress == nil {
		return
	}
	if b.err = b.compress.Compress(b.buf.Buf); b.err == nil {
		b.buf.Buf = append(b.buf.Buf[:0], b.compress.Data...)
	}
}

// stop ends the body's use of the rows.
func (b *body) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Buf, b.at = nil, 0
	if b.err == nil {
		b.err = errStopped
	}
}

// broken returns what went wrong in building the blocks, if anything did.
func (b *body) broken() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if errors.Is(b.err, io.EOF) {
		return nil
	}
	return b.err
}
