// Package conversation holds the concepts that formats of agent conversations share, so
// that a decoder states its format and not the bookkeeping. A decoder keeps these values
// in its state, reads records, and passes the messages that it adds to decoder.Output
// through them. All of them are plain data: a snapshot is their JSON.
//
//   - Run is one invocation of an agent: where it begins, which input wakes it after its
//     end, which call caused it.
//   - Response is one response of the model: the keys of its parts and its tokens.
//   - Calls is the bounded table of tool calls, Delegation a call that may hand work over.
//   - Deltas assembles parts from their pieces, and drops a part when the whole arrives.
//   - LastText recognizes the record that repeats the last text of a run.
//   - Numbers, Lines, Emitted and Written reconcile a form of the conversation with the messages of
//     another: a stream that is read again, records with whole parts, a reload.
//   - Waits are the questions to a person that have no answer.
//   - Content is what a list of blocks has, its texts and files; AttrsAs makes members of a record attributes of a message.
//   - Rules are the rules of a format by the types of its records.
//   - Time is a time with the precision of the protocol.
//
// Invariants, each with a test of that name:
//
//   - A run starts once (TestRunStartsOnce) and names its parent once, on the first message
//     after the parent is known (TestRunNamesItsParentOnce). Input after the end of a run
//     begins another one; input before it does not (TestWake).
//   - The tokens of a response are emitted once as complete; the usage has the
//     highest count of each class over all records, in any order (TestUsageOnce,
//     TestHighestCountWins).
//   - Token classes are exclusive in a message and the sum is the processed total
//     (TestTokenClassesAreExclusive).
//   - The n-th text of a response has the same key in each form of the conversation
//     (TestPartsHaveTheSameKeysInEachForm), so that a stream and its reload fold to the same
//     messages (TestStreamEqualsReload).
//   - The last text of a run is recognized however it is escaped (TestLastText).
//   - A numbered frame is read once, in any order (TestNumbersOnce); beyond MaxRanges gaps a
//     frame may be read twice and is never skipped (TestNumbersAreBounded).
//   - A line that is there twice is read once, and of pieces that are alike in one millisecond each
//     (TestLinesOnce).
//   - A part that was emitted as complete is not emitted again: an equal content is a
//     repetition, another one is late (TestCompletePartDoesNotChange). Parts have the same
//     ordinals in each form and each cut of it (TestReloadFoldsToTheStream), and at most
//     MaxEmitted are kept (TestEmittedAreBounded).
//   - Of a record that repeats the whole text of a run, the rest is new: the parts and the rest
//     are the text, however the parts were cut (TestRestIsWhatIsNew).
//   - The messages about a call that hands work over name the same agent; its result names the run (TestDelegation).
//   - A table of calls keeps at most MaxCalls open calls and counts the evicted ones
//     (TestCallsAreBounded); a repeated call is one call (TestCallOnce); a result may
//     precede its call (TestEarlyResult); calls without ids are matched to results by name and
//     order (TestCallsWithoutIDs); of calls that fit an open one is found first (TestOpenCallsAreFoundFirst). Two calls
//     of one number are two calls (TestNumberedCalls).
//   - A run of which the protocol has no reason ends with stop, or with error if it failed; an error that is there is the
//     content of its message, and one that is not changes nothing (TestOutcomes).
//   - A type of records has one rule, which it may share with others (TestRules).
//   - The pieces of a name are one part, which the first of them opens (TestPiecesMakeOnePart).
//   - Parts keep at most MaxParts open parts and MaxBytes of text; a part that lost
//     text is marked as cut (TestDeltasAreBounded).
package conversation
