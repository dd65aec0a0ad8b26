# SPDX-License-Identifier: BSD-3-Clause
"""What leaveout raises and warns with, beyond ValueError and TypeError."""


class LeaveoutError(Exception):
    """Base class of the errors that only leaveout raises."""


class DataFileError(LeaveoutError, ValueError):
    """A data file is damaged, or its content cannot be used; the message names it."""


class ModelFileError(LeaveoutError, ValueError):
    """A model file is damaged, or holds what a model file may not."""


class NotSeparableError(LeaveoutError, ValueError):
    """A hard margin was asked for, and the kernel does not separate the classes."""


class ClusterLostError(LeaveoutError, ConnectionError):
    """The scheduler of a cluster is gone, and with it what was under way."""


class GramTooLargeError(LeaveoutError, MemoryError):
    """The Gram matrices of so many rows do not fit into memory."""


class LeaveoutWarning(UserWarning):
    """Base class of the warnings that only leaveout gives."""


class CertificateWarning(LeaveoutWarning):
    """A number was returned whose accuracy could not be proved."""


class SingletonClassWarning(LeaveoutWarning):
    """A class has one member: leaving it out leaves no such class."""


class PreprocessingWarning(LeaveoutWarning):
    """Steps of a Pipeline were fitted once on all rows, also those left out later."""


class AntiLearningWarning(LeaveoutWarning):
    """C is so small that left-out labels follow the balance of the classes."""


class CalibrationWarning(LeaveoutWarning):
    """Decision values give no probability: the shares of the classes stand in."""


class PooledScoreWarning(LeaveoutWarning):
    """A score compares decision values of classifiers that differ in a sample."""


class CheckpointWarning(LeaveoutWarning):
    """A finished cell in a checkpoint file is corrupt and is computed again."""


class WorkerKilledError(LeaveoutError, RuntimeError):
    """A worker process was ended from outside, often for want of memory."""


class CheckpointError(LeaveoutError, ValueError):
    """A checkpoint file belongs to another run, or cannot be used."""


for _base in (LeaveoutError, LeaveoutWarning):
    for _kind in (_base, *_base.__subclasses__()):
        _kind.__module__ = "leaveout"  # where users find them
