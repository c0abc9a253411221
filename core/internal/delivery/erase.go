package delivery

import (
	"fmt"

	"github.com/earshot-dev/earshot/core/export"
)

// Rewrite changes the batches that are in the spools: change reports whether it did. It returns
// how many it changed. A batch that an exporter is being offered meanwhile is offered as it was.
func (d *Delivery) Rewrite(change func(*export.Batch) bool) (changed int, err error) {
	for _, q := range d.queues {
		n, err := q.spool.Rewrite(func(record []byte) ([]byte, bool, error) {
			b, sealed, err := decode(record)
			if err != nil || !change(b) { // next reports one that cannot be decoded
				return record, false, nil
			}
			record, err = encode(b, sealed)
			return record, err == nil, err
		})
		if changed += n; err != nil {
			return changed, fmt.Errorf("exporter %s: %w", q.Name, err)
		}
	}
	return changed, nil
}

// Behind reports whether an exporter has batches in its spool.
func (d *Delivery) Behind(exporter string) bool {
	for _, q := range d.queues {
		if q.Name == exporter {
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.behind
		}
	}
	return false
}
