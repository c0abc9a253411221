package poll

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/source/body"
)

// answer is one page as the server returned it.
type answer struct {
	seen
	empty  bool
	frames []frame.Frame
	data   []byte // of the first frame
}

// get requests one page. An unchanged page is returned as before, without frames.
func (p *Poller) get(ctx context.Context, u *url.URL, before seen) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, p.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, p.Method, u.String(), strings.NewReader(p.Body))
	if err != nil {
		return nil, err
	}
	if p.Body == "" {
		r.Body, r.GetBody, r.ContentLength = http.NoBody, nil, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, application/x-ndjson;q=0.9")
	for k, v := range p.Headers {
		if strings.EqualFold(k, "Host") {
			r.Host = v.Reveal()
		}
		r.Header.Set(k, v.Reveal())
	}
	if before.ETag != "" && p.Method == http.MethodGet {
		r.Header.Set("If-None-Match", before.ETag)
	}
	res, err := p.http.Do(r)
	if err != nil {
		if u := (*url.Error)(nil); errors.As(err, &u) {
			return nil, u.Err // without the URL, which may hold secrets
		}
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	switch {
	case res.StatusCode == http.StatusNotModified && before.ETag != "":
		return &answer{seen: before}, nil
	case res.StatusCode != http.StatusOK:
		return nil, source.NewAnswered(res, "the server answered "+res.Status)
	}
	shape := body.ShapeOf(res.Header.Get("Content-Type"))
	if shape != body.Document && shape != body.Lines {
		return nil, source.NewAnswered(res, fmt.Sprintf("the server answered with %q, which is not JSON", body.Media(res.Header.Get("Content-Type"))))
	}
	return p.read(res, shape, u)
}

// read reads an answer to its end.
func (p *Poller) read(res *http.Response, shape body.Shape, u *url.URL) (*answer, error) {
	// The transport undoes gzip; some servers send another encoding than they were asked for.
	in, err := body.Decode(res.Header.Get("Content-Encoding"), res.Body)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	defer func() { _ = in.Close() }()
	cutter := body.New(shape, p.MaxBody)
	var b frame.Batch
	h := newDigest()
	for buf := make([]byte, 64<<10); ; {
		n, err := in.Read(buf)
		_, _ = h.Write(buf[:n])
		cutter.Feed(&b, buf[:n], time.Now().UnixNano())
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
	}
	cutter.Finish(&b, time.Now().UnixNano(), true)
	a := &answer{frames: b.Frames, empty: len(b.Frames) == 0}
	a.ETag, a.Hash = res.Header.Get("ETag"), h.sum()
	if len(a.ETag) > maxETag {
		a.ETag = ""
	}
	if len(b.Frames) == 1 && b.Frames[0].Reason == "" {
		a.data = b.Frames[0].Data
	}
	if p.pages != nil && a.data != nil {
		a.Next, a.empty = p.pages.next(a.data, u.Query())
	}
	return a, nil
}

// maxETag is the longest ETag that is remembered.
const maxETag = 1 << 10
