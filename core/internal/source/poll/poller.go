package poll

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// Poller asks one API.
type Poller struct {
	Settings
	url       *url.URL
	interval  time.Duration
	http      *http.Client
	backoff   retry.Backoff
	rec       source.Recorder
	whole     *target // of the URL itself
	ledger    source.Recording
	pages     *Pages     // nil: one answer has everything
	seenItems *seenItems // of a list whose items are requested
	trouble   string     // what was last complained of

	asked  atomic.Bool // one round at least
	asking atomic.Bool
}

// Idle implements source.Listener: everything has been asked for, and the next round
// has not begun.
func (p *Poller) Idle() bool { return p.asked.Load() && !p.asking.Load() }

// Run implements source.Listener. It may be called once.
func (p *Poller) Run(ctx context.Context, rec source.Recorder) error {
	defer p.http.CloseIdleConnections()
	p.rec = rec
	for {
		p.asking.Store(true)
		err := p.round(ctx)
		p.asked.Store(true)
		p.asking.Store(false)
		pause := p.interval
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			pause = max(p.backoff.Next(), p.interval)
			if busy := (*statusError)(nil); errors.As(err, &busy) {
				pause = max(pause, busy.after)
			}
			if text := err.Error(); text != p.trouble {
				p.trouble = text
				p.Logger.Warn("not answered; it is asked again", "url", source.Address(p.url), "error", err)
			}
		default:
			p.backoff.Reset()
			p.trouble = ""
		}
		if !retry.Wait(ctx, pause) {
			return nil
		}
	}
}

// round asks for everything once.
func (p *Poller) round(ctx context.Context) error {
	if p.pages.lists(p.url) {
		return p.items(ctx)
	}
	if p.whole == nil {
		p.whole = &target{url: p.url}
	}
	return p.ask(ctx, p.whole)
}
