package app

import (
	"context"
	"io"
	"net/url"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/internal/livetail"
)

// ErrNotRunning is the error when no sidecar runs on a data directory.
var ErrNotRunning = livetail.ErrNotRunning

// FrameFilter picks frames; the zero value picks all.
type FrameFilter struct {
	Source, Format string
	Match          string // a text that the frame contains
}

// Frame is a frame as a decoder gets it, redacted.
type Frame = livetail.Line

// Watch follows the frames that the sidecar of a configuration reads: a Frame as a JSON
// object on each line, until it is closed. It fails with ErrNotRunning when no sidecar
// runs.
func Watch(ctx context.Context, c *config.Config, f FrameFilter) (io.ReadCloser, error) {
	v := url.Values{}
	for key, value := range map[string]string{"source": f.Source, "format": f.Format, "match": f.Match} {
		if value != "" {
			v.Set(key, value)
		}
	}
	return livetail.Watch(ctx, c.DataDir, v)
}
