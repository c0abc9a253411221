package pipeline

import (
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// TestSlabsAreUsedAgain: a batch has its records in the memory of a committed one, and none of that one's.
func TestSlabsAreUsedAgain(t *testing.T) {
	var pool slabs[msg.Message]
	m := msg.Message{Key: "k", Session: "s", Content: msg.Raw([]byte("text"))}
	var batch records[msg.Message]
	fill := func() (list []*msg.Message) {
		for range 1000 {
			list = append(list, batch.add(&pool, &m))
		}
		return list
	}
	list := fill()
	for i, got := range list {
		if got.Key != "k" || i > 0 && got == list[i-1] {
			t.Fatalf("record %d is %+v", i, got)
		}
	}
	pool.put(&batch)
	for i, left := range list {
		if left.Key != "" || !left.Content.IsZero() {
			t.Fatalf("record %d of a committed batch is still there", i)
		}
	}
	if n := testing.AllocsPerRun(20, func() {
		for range 1000 {
			batch.add(&pool, &m)
		}
		pool.put(&batch)
	}); n > 5 { // the list of the slabs
		t.Errorf("a batch of 1,000 messages allocates %v times", n)
	}
}

// TestSlabsOfABacklogAreLetGo: small batches that follow a backlog one after the other, as live traffic
// has them, do not keep its slabs, and neither does silence. In a backlog two batches find theirs.
func TestSlabsOfABacklogAreLetGo(t *testing.T) {
	var pool slabs[int]
	fill := func(n int) (r records[int]) {
		for i := range n {
			r.add(&pool, &i)
		}
		return r
	}
	first, second, third := fill(60*slabSize), fill(60*slabSize), fill(60*slabSize)
	pool.put(&first)
	pool.put(&second)
	pool.put(&third)
	if n := len(pool.free); n != 120 {
		t.Errorf("%d slabs are kept of three batches of 60", n)
	}
	batches := 0
	for ; batches < 100 && len(pool.free) > 2; batches++ {
		small := fill(10)
		pool.put(&small)
	}
	if batches < 5 || batches > 30 {
		t.Errorf("let go after %d batches", batches)
	}
	large := fill(60 * slabSize)
	pool.put(&large)
	pool.drop() // there was no batch for a while
	if len(pool.free) != 0 {
		t.Errorf("%d slabs are kept in silence", len(pool.free))
	}
	one := fill(1)
	if pool.put(&one); len(pool.free) != 1 {
		t.Errorf("%d slabs are kept of one", len(pool.free))
	}
}
