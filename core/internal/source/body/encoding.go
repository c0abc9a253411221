package body

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// ErrEncoding is the error for unknown content encodings.
var ErrEncoding = errors.New("unknown content encoding")

// maxWindow is the largest window of a zstd stream; RFC 8878 asks for 8 MiB.
const maxWindow = 8 << 20

// maxEncodings is the maximum number of nested encodings.
const maxEncodings = 3

// Plain reports whether that Content-Encoding leaves the bytes as they are.
func Plain(encoding string) bool {
	encoding = strings.TrimSpace(encoding)
	return encoding == "" || strings.EqualFold(encoding, "identity")
}

// Cost estimates the memory that Decode takes for a Content-Encoding, in bytes. The
// window of br may be up to four times that; for streams it is never so large.
func Cost(encoding string) int {
	cost := 0
	for name := range strings.SplitSeq(strings.ToLower(encoding), ",") {
		switch strings.TrimSpace(name) {
		case "br":
			cost += 4 << 20
		case "zstd":
			cost += maxWindow + 2<<20
		default:
			cost += 64 << 10
		}
	}
	return cost
}

// Decode returns a reader of the decoded bytes of r under a Content-Encoding:
// gzip, deflate, br, zstd, or a list of them. It returns bytes as soon as the sender has
// flushed them. It reads the first bytes of r, so it may wait for
// them. Errors of r are returned as they are.
func Decode(encoding string, r io.Reader) (io.ReadCloser, error) {
	names := strings.Split(encoding, ",")
	if len(names) > maxEncodings {
		return nil, fmt.Errorf("%w: %d of them", ErrEncoding, len(names))
	}
	out := io.NopCloser(r)
	for i := len(names) - 1; i >= 0; i-- {
		next, err := decodeOne(strings.ToLower(strings.TrimSpace(names[i])), out)
		if err != nil {
			_ = out.Close()
			return nil, err
		}
		out = next
	}
	return out, nil
}

func decodeOne(name string, r io.Reader) (io.ReadCloser, error) {
	switch name {
	case "", "identity":
		return io.NopCloser(r), nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		return z, nil
	case "deflate":
		return inflate(bufio.NewReader(r))
	case "br":
		return io.NopCloser(brotli.NewReader(r)), nil
	case "zstd":
		// One goroutine less than the default, none: blocks are decoded as they are read.
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		return z.IOReadCloser(), nil
	}
	return nil, fmt.Errorf("%w: %q", ErrEncoding, name)
}

// inflate reads deflate: zlib by the standard, and raw by some servers.
func inflate(r *bufio.Reader) (io.ReadCloser, error) {
	head, err := r.Peek(2)
	if err != nil && len(head) < 2 {
		return nil, fmt.Errorf("deflate: %w", err)
	}
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		z, err := zlib.NewReader(r)
		if err != nil {
			return nil, fmt.Errorf("deflate: %w", err)
		}
		return z, nil
	}
	return flate.NewReader(r), nil
}
