package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/config"
	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/internal/deadletter"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

// refusals keeps the rows that exporters refused: in the local file, and then in the table.
type refusals struct {
	log     *deadletter.Log // the local file
	add     func(msg.DeadLetter)
	metrics *telemetry.Metrics
	logger  *slog.Logger
}

// refused keeps one row.
func (r *refusals) refused(exporter string, b *export.Batch, why error) error {
	e, err := deadletter.Refused(exporter, b, why, time.Now().UnixNano())
	if err != nil {
		return err
	}
	if err := r.log.Append(&e); err != nil {
		return err
	}
	if e.Kind != "letter" { // one that was refused would be refused again
		r.add(e.DeadLetter)
	}
	return nil
}

// damaged makes a dead letter of spooled batches that cannot be read.
func (r *refusals) damaged(exporter string, why error) {
	const stage = "export"
	r.add(msg.DeadLetter{
		ID:    msg.NewDeadLetterID("", "", stage, exporter, why.Error()),
		Stage: stage, Reason: msg.ReasonSpoolDamaged, Detail: why.Error(), Origin: "spool of " + exporter, Seen: time.Now().UnixNano(), Ver: 1,
	})
}

// mirror sends the rows of the local file of a data directory to the table, which may lack
// them: the sidecar may have died between both.
func (r *refusals) mirror(dataDir string) error {
	list, err := deadletter.Read(dataDir)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Kind != "letter" && !list[i].Resolved {
			r.add(list[i].DeadLetter)
		}
	}
	return nil
}

// lost counts the rows that the bounded local file evicted.
func (r *refusals) lost(n int) {
	r.metrics.DeadLettersLost.Add(int64(n))
	r.logger.Warn("the oldest refused rows are gone from the local file; the table of dead letters has them", "rows", n)
}

// RefusedRows are the rows that exporters refused, as the local file has them.
func RefusedRows(c *config.Config) ([]msg.DeadLetter, error) {
	list, err := deadletter.Read(c.DataDir)
	out := make([]msg.DeadLetter, 0, len(list))
	for i := range list {
		out = append(out, list[i].DeadLetter)
	}
	return out, err
}

// RetryRefused offers refused rows to their exporters again. It returns those that
// were taken.
func RetryRefused(ctx context.Context, c *config.Config, exporters []Exporter, wanted func(msg.ID) bool) (resolved []msg.DeadLetter, err error) {
	list, err := deadletter.Read(c.DataDir)
	if err != nil {
		return nil, err
	}
	log, err := deadletter.Open(c.DataDir, func(int) {})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for i := range list {
		e := &list[i]
		if e.Resolved || !wanted(e.ID) {
			continue
		}
		for _, x := range exporters {
			if x.Name != e.Exporter {
				continue
			}
			var b export.Batch
			if err := b.UnmarshalBinary(e.Record); err != nil {
				return resolved, fmt.Errorf("dead letter %s: %w", e.ID, err)
			}
			b.ID += "r" // the name it had is that of a batch that was refused
			if err := x.Export(ctx, &b); export.IsPermanent(err) {
				continue
			} else if err != nil {
				return resolved, err
			}
			e.Resolved, e.Ver = true, e.Ver+1
			if err := log.Append(e); err != nil {
				return resolved, err
			}
			resolved = append(resolved, e.DeadLetter)
		}
	}
	return resolved, nil
}

// ResolveRefused marks those of the dead letters as resolved that are in the local file.
func ResolveRefused(c *config.Config, letters []msg.DeadLetter) (err error) {
	list, err := deadletter.Read(c.DataDir)
	if err != nil {
		return err
	}
	log, err := deadletter.Open(c.DataDir, func(int) {})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for i := range list {
		e := &list[i]
		if e.Resolved || !slices.ContainsFunc(letters, func(l msg.DeadLetter) bool { return l.ID == e.ID }) {
			continue
		}
		e.Resolved, e.Ver = true, e.Ver+1
		if err := log.Append(e); err != nil {
			return err
		}
	}
	return nil
}

// Resolve marks dead letters as resolved in the table.
func Resolve(ctx context.Context, exporters []Exporter, letters []msg.DeadLetter) error {
	for len(letters) > 0 {
		n := min(len(letters), 100)
		b := &export.Batch{DeadLetters: letters[:n]}
		for i := range b.DeadLetters {
			b.DeadLetters[i].Resolved = true
		}
		b.ID = fmt.Sprintf("resolved-%s-%d", b.DeadLetters[0].ID, b.DeadLetters[0].Ver)
		for _, x := range exporters {
			if err := x.Export(ctx, b); err != nil {
				return fmt.Errorf("%s: %w", x.Name, err)
			}
		}
		letters = letters[n:]
	}
	return nil
}
