; The memory of arrays that a kernel makes for a moment: in place of Numba's runtime, which a library does without.
; A block is counted by what holds it, all of it in one call of one thread, so that nothing here is atomic.
; Numba reads the address of the data from offset 24. Before the data: count, two unused, address.

declare noalias ptr @malloc(i64)
declare void @free(ptr)

define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %alignment) alwaysinline {
entry:
  %align = zext i32 %alignment to i64
  %head = add i64 %align, 32
  %all = add i64 %size, %head
  %block = call noalias ptr @malloc(i64 %all)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %fill
fill:
  store i64 1, ptr %block
  %begin = ptrtoint ptr %block to i64
  %above = add i64 %begin, %head
  %mask = sub i64 0, %align
  %aligned = and i64 %above, %mask
  %data = inttoptr i64 %aligned to ptr
  %place = getelementptr i8, ptr %block, i64 24
  store ptr %data, ptr %place
  br label %done
done:
  ret ptr %block
}

define ptr @NRT_MemInfo_data_fast(ptr %block) alwaysinline {
  %place = getelementptr i8, ptr %block, i64 24
  %data = load ptr, ptr %place
  ret ptr %data
}

define void @NRT_incref(ptr %block) alwaysinline {
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %count
count:
  %held = load i64, ptr %block
  %more = add i64 %held, 1
  store i64 %more, ptr %block
  br label %done
done:
  ret void
}

define void @NRT_decref(ptr %block) alwaysinline {
entry:
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %count
count:
  %held = load i64, ptr %block
  %less = sub i64 %held, 1
  store i64 %less, ptr %block
  %left = icmp eq i64 %less, 0
  br i1 %left, label %last, label %done
last:
  call void @free(ptr %block)
  br label %done
done:
  ret void
}
