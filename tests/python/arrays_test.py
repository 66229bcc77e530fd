"""Arrays that calls accept and refuse: NumPy, buffer protocol, DLPack, addresses."""

import array
import ctypes
import os
import subprocess
import sys
import unittest

import ml_dtypes
import numpy
import tutti
from tutti import _arrays, _types


class Exporter:
    """An array that has nothing but DLPack."""

    def __init__(self, numbers, versioned=True, device=1):
        self.numbers, self.versioned, self.device = numbers, versioned, device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("max_version is unknown")
        return self.numbers.__dlpack__(**options)


class Arrays(unittest.TestCase):
    def setUp(self):
        self.comm = tutti.Communicator()
        self.addCleanup(self.comm.close)

    def assert_refused(self, words, *arguments, **options):
        with self.assertRaisesRegex(tutti.InvalidArgument, words) as caught:
            self.comm.all_reduce(*arguments, **options)
        self.assertEqual((caught.exception.operation, caught.exception.rank), ("all_reduce", 0))
        self.assertIsInstance(caught.exception, ValueError)

    def test_result_is_new_and_has_shape_and_type_of_input(self):
        for shape in ((), (3,), (2, 3), (0, 4)):
            numbers = numpy.full(shape, 2, "int16")
            result = self.comm.all_reduce(numbers)
            self.assertIsNot(result, numbers)
            self.assertEqual((result.shape, result.dtype, result.tolist()), (shape, numbers.dtype, numbers.tolist()))

    def test_out_receives_result_whatever_its_shape(self):
        out = numpy.zeros(6, "float32")
        self.assertIs(self.comm.all_reduce(numpy.ones((2, 3), "float32"), out=out), out)
        self.assertEqual(out.tolist(), [1] * 6)

    def test_read_only_inputs_are_allowed_and_outputs_refused(self):
        numbers = numpy.arange(3)
        numbers.flags.writeable = False
        self.assertEqual(self.comm.all_reduce(numbers).tolist(), [0, 1, 2])
        self.assert_refused("the array is read-only; results need a writable array", numbers, out=numbers)
        self.assert_refused("the bytes is read-only", b"abc", out=b"abc")
        self.assert_refused("the Exporter is read-only", numbers, out=Exporter(numbers))
        self.assert_refused("the Buffer is not writable", numbers, out=tutti.Buffer(1, 3, "int64", writable=False))

    def test_ranks_that_no_int_holds_are_refused(self):
        array, comm = numpy.ones(1), self.comm
        for name, call in (("root", comm.broadcast), ("root", comm.reduce), ("root", comm.gather), ("root", comm.scatter),
                           ("peer", comm.send), ("peer", comm.recv)):
            for value, words in ((1 << 32, "is 4294967296; it must fit in 32 bits"), ("0", "is '0'; it must be an integer"),
                                 (0.5, "is 0.5; it must be an integer")):
                with self.assertRaisesRegex(tutti.InvalidArgument, f"{name} {words}"):
                    call(array, value)
        for call in (lambda: comm.split(1 << 32), lambda: comm.split(-1), lambda: comm.split(0, "0"), lambda: comm.shrink([0.5]),
                     lambda: tutti.Communicator.create(b"id", 0, 1), lambda: tutti.Communicator.create_all("1")):
            self.assertRaises(tutti.InvalidArgument, call)

    def test_sizes_that_no_memory_has_are_refused(self):
        for count in (-1, 1 << 61):
            with self.assertRaisesRegex(tutti.InvalidArgument, f"count is {count}; it must be 0 or more"):
                tutti.Buffer(64, count, "float32")

    def test_arrays_that_are_not_contiguous_are_refused(self):
        numbers = numpy.ones((3, 4))
        for part in (numbers[:, 1], numbers.T, numbers[::-1], numpy.broadcast_to(numpy.ones(1), (2, 1, 2))):
            self.assert_refused("not contiguous in C order .shape .*pass numpy.ascontiguousarray", part)
            self.assert_refused("not contiguous", numpy.ones(part.size), out=part)
            self.assert_refused("the Exporter is not contiguous", Exporter(part))
        self.assert_refused("not contiguous", memoryview(b"abcdef")[::2])

    def test_arrays_with_one_element_per_dimension_are_contiguous(self):
        numbers = numpy.ones((4, 4))[::2][:1]  # Has strides (8, 1).
        self.assertEqual(numbers.strides, (64, 8))
        self.assertEqual(self.comm.all_reduce(Exporter(numbers)).tolist(), [[1] * 4])

    def test_unknown_elements_are_refused(self):
        self.assert_refused("a foreign byte order, .* pass array.astype.'float32'.$", numpy.ones(2, ">f4"))
        self.assert_refused("type object are unknown", numpy.array([None]))
        self.assert_refused("type float8_e4m3 are unknown", numpy.ones(2, ml_dtypes.float8_e4m3))
        self.assert_refused("type int4 are unknown", numpy.ones(2, ml_dtypes.int4))
        self.assert_refused("format '>f' are unknown", memoryview(numpy.ones(2, ">f4")))
        self.assert_refused("longdouble", Exporter(numpy.ones(2, "longdouble")))

    def test_masked_arrays_are_refused(self):
        self.assert_refused("the array has a mask", numpy.ma.array([1, 2], mask=[True, False]))
        self.assert_refused("the array has a mask", numpy.ones(2), out=numpy.ma.ones(2))

    def test_objects_that_are_not_arrays_are_refused(self):
        for value in ([1, 2], 3, None, "text"):
            self.assert_refused(f"an object of class {type(value).__name__} is not an array; pass a NumPy array", value)

    def test_out_of_another_size_or_type_is_refused(self):
        self.assert_refused("out has 2 elements; it must have 3", numpy.ones(3), out=numpy.ones(2))
        self.assert_refused("out has type float32; it must have float64", numpy.ones(3), out=numpy.ones(3, "f4"))

    def test_blocks_need_an_element_or_a_dimension_for_each_rank(self):
        with self.assertRaisesRegex(tutti.InvalidArgument, r"shape \(2, 2\); .* first dimension must be 1"):
            self.comm.reduce_scatter(numpy.ones((2, 2)))
        with self.assertRaisesRegex(tutti.InvalidArgument, r"shape \(2, 2\); .* first dimension must be 1"):
            self.comm.all_to_all(numpy.ones((2, 2)))
        self.comm.all_to_all(numpy.ones((2, 2)), out=numpy.ones(4))
        with self.assertRaisesRegex(tutti.InvalidArgument, "send block of 4 elements at 0 exceeds the array of 3 elements"):
            self.comm.all_to_all_v(numpy.ones(3), [4], [4])
        with self.assertRaisesRegex(tutti.InvalidArgument, "recv block of 3 elements at 1 exceeds the array of 3 elements"):
            self.comm.all_to_all_v(numpy.ones(3), [3], [3], numpy.ones(3), recv_displacements=[1])
        numbers = numpy.ones(3)
        with self.assertRaisesRegex(tutti.InvalidArgument, "out overlaps the array; all_to_all_v cannot work in place"):
            self.comm.all_to_all_v(numbers, [3], [3], numbers)
        with self.assertRaisesRegex(tutti.InvalidArgument, "have 2 and 2 elements; they must have 1"):
            self.comm.all_to_all_v(numpy.ones(3), [1, 1], [3])

    def test_unknown_reductions_are_refused(self):
        for op in ("mean", 3, True, 17, [], None):
            self.assert_refused("is unknown; valid: sum, prod, min, max, avg", numpy.ones(2), op)

    def test_buffers_are_read_and_written(self):
        for numbers in (array.array("h", [1, -2]), bytearray(b"ab"), (ctypes.c_float * 2)(1, 2), (ctypes.c_bool * 2)(1, 0),
                        memoryview(bytearray(4))):
            expected = list(numbers)
            self.assertEqual(self.comm.all_reduce(numbers).tolist(), expected)
            out = bytearray(memoryview(numbers).nbytes)
            view = memoryview(out).cast(memoryview(numbers).format.lstrip("<"))
            self.comm.all_reduce(numbers, out=view)
            self.assertEqual(view.tolist(), expected)

    def test_dlpack_arrays_are_read_and_written(self):
        for versioned, dtype in ((True, "int32"), (False, "int32"), (True, "bool"), (True, "complex64"), (True, "complex128")):
            out = numpy.zeros((2, 3), dtype)
            part = (numpy.arange(12) % 5).astype(dtype).reshape(4, 3)[1:3]  # Has an offset.
            self.comm.all_reduce(Exporter(part, versioned), out=Exporter(out, versioned))
            self.assertEqual(out.tolist(), part.tolist())

    def test_dlpack_arrays_on_a_device_are_refused(self):
        self.assert_refused("lies on a device .DLPack type 2.; it must lie in host memory", Exporter(numpy.ones(2), device=2))
        self.assert_refused("the Exporter cannot be exported", Exporter(numpy.ones(2), device="meta"))  # int() refuses it.

    def test_dlpack_memory_is_released(self):
        numbers = numpy.ones(2)
        before = sys.getrefcount(numbers)
        exporter = Exporter(numbers)
        self.comm.all_reduce(exporter, out=exporter)
        del exporter
        self.assertEqual(sys.getrefcount(numbers), before)

    def test_addresses_are_read_and_written(self):
        numbers, out = numpy.arange(4.0), numpy.zeros(4)
        self.comm.all_reduce(tutti.Buffer(numbers.ctypes.data, 4, tutti.Type.float64),
                             out=tutti.Buffer(out.ctypes.data, 4, "float64"))
        self.assertEqual(out.tolist(), numbers.tolist())
        with self.assertRaisesRegex(tutti.InvalidArgument, "type 'float' is unknown; types are int8"):
            tutti.Buffer(numbers.ctypes.data, 4, "float")

    def test_zeros_are_shared_memory_that_is_freed_with_its_last_slice(self):
        before = len(os.listdir("/proc/self/fd"))
        for shape, dtype in (((2, 3), "float32"), (5, "bfloat16"), ((), numpy.int16), ((0, 2), tutti.Type.uint8)):
            numbers = tutti.zeros(shape, dtype)
            self.assertEqual(numbers.shape, shape if isinstance(shape, tuple) else (shape,))
            self.assertEqual(numbers.dtype, _arrays.numpy_dtype(_types.type_of(dtype)))
            self.assertFalse(numbers.any())
            part = numbers[...]
            del numbers
            self.assertEqual(len(os.listdir("/proc/self/fd")), before + 1)
            part[...] = 1
            self.assertTrue((self.comm.all_reduce(part, out=part) == 1).all())
            del part
            self.assertEqual(len(os.listdir("/proc/self/fd")), before)
        for shape in (-1, (2, -3), "x"):
            with self.assertRaisesRegex(tutti.InvalidArgument, "sizes must be 0 or more"):
                tutti.zeros(shape)
        for shape in (2**62 + 1, (2**32, 2**32), 2**64):
            with self.assertRaisesRegex(tutti.InvalidArgument, "exceed the address space"):
                tutti.zeros(shape)

    def test_zeros_accept_dtypes_of_numpy(self):
        for dtype in ("f4", "<i2", float, int, complex, "?"):
            self.assertEqual(tutti.zeros(2, dtype).dtype, numpy.dtype(dtype))
        for dtype in (">f4", "U3", "float31", None, [("x", int)]):
            with self.assertRaisesRegex(tutti.InvalidArgument, "^type .* is unknown; types are int8"):
                tutti.zeros(2, dtype)

    def test_numpy_is_optional(self):
        program = """
import array, sys
sys.modules["numpy"] = None  # import numpy fails.
import tutti
comm = tutti.Communicator()
numbers = array.array("f", [1, 2])
assert comm.all_reduce(numbers, out=numbers) is numbers
try:
    comm.all_reduce(numbers)
except tutti.InvalidArgument as error:
    print(error)
"""
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.stdout, "all_reduce: no NumPy array of type float32 can be created, because numpy is not "
                         "installed: install it, or pass out=\n", run.stderr)


if __name__ == "__main__":
    unittest.main()
