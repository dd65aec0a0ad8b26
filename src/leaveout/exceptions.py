# SPDX-License-Identifier: BSD-3-Clause
"""Errors and warnings of leaveout, besides ValueError and TypeError."""


class LeaveoutError(Exception):
    """Base class of the errors that only leaveout raises."""


class DataFileError(LeaveoutError, ValueError):
    """A data file is corrupt, or its content cannot be used."""


class ModelFileError(LeaveoutError, ValueError):
    """A model file is corrupt, or contains something that is not allowed."""


class NotSeparableError(LeaveoutError, ValueError):
    """A hard margin was requested, but the kernel does not separate the classes."""


class ClusterLostError(LeaveoutError, ConnectionError):
    """The connection to the scheduler of a cluster was lost during a computation."""


class GramTooLargeError(LeaveoutError, MemoryError):
    """The Gram matrices do not fit into memory."""


class LeaveoutWarning(UserWarning):
    """Base class of the warnings that only leaveout issues."""


class CertificateWarning(LeaveoutWarning):
    """The accuracy of a result could not be proved."""


class SingletonClassWarning(LeaveoutWarning):
    """A class has only one sample, so leaving it out removes the class."""


class PreprocessingWarning(LeaveoutWarning):
    """Pipeline steps were fitted once on all rows, including those left out later."""


class AntiLearningWarning(LeaveoutWarning):
    """C is too small: class proportions alone decide the left-out labels."""


class CalibrationWarning(LeaveoutWarning):
    """Decision values carry no information; probabilities are class proportions."""


class PredictorWarning(LeaveoutWarning):
    """Errors predicted by a LooPredictor may be unreliable."""


class PooledScoreWarning(LeaveoutWarning):
    """A score ranks decision values together that come from different classifiers."""


class CheckpointWarning(LeaveoutWarning):
    """A finished cell in a checkpoint file is corrupt and will be recomputed."""


class WorkerKilledError(LeaveoutError, RuntimeError):
    """A worker process was killed, often because memory ran out."""


class CheckpointError(LeaveoutError, ValueError):
    """A checkpoint file belongs to a different run, or cannot be used."""


for _base in (LeaveoutError, LeaveoutWarning):
    for _kind in (_base, *_base.__subclasses__()):
        _kind.__module__ = "leaveout"  # where users find them
